"""Private temporary folders: for this account alone, and removed at the next start if kill -9 left them.

A folder is locked (flock) for as long as its process lives: the kernel takes the lock away, however the
process ends. So nobody asks for a process number, which may belong to another process by then, or to another
container. What is removed must be a folder of this account, for its owner alone, under our name, unlocked,
and in a place where no other account can rename things; links are never followed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

try:
    import fcntl
except ImportError:  # Windows: folders are not locked there, and none is removed
    fcntl = None  # type: ignore[assignment]

PREFIX = "sottovoce-private-"
_NAME = re.compile(PREFIX + "[a-z0-9_]{8}")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def private_folder() -> Iterator[str]:
    """A folder of mode 0700, which goes with the block, or with the next start."""
    _remove_abandoned_once()
    folder, lock = _new_folder()
    try:
        with folder as path:
            yield path
    finally:
        os.close(lock)


def private_file(path: str, flags: int) -> int:
    """The `opener` of a new file for its owner alone, whatever the umask: open(path, "x", opener=…)."""
    return os.open(path, flags, 0o600)


def remove_abandoned() -> None:
    """Remove the private folders of this account whose processes have ended; a failure is no error."""
    if fcntl is None:
        return
    with suppress(OSError):
        place = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY)
        try:
            names = os.listdir(place) if _is_trusted(os.fstat(place)) else []
            for name in filter(_NAME.fullmatch, names):
                with suppress(OSError):
                    _remove_if_abandoned(place, name)
        finally:
            os.close(place)


_remove_abandoned_once = cache(remove_abandoned)


def _new_folder() -> tuple[tempfile.TemporaryDirectory[str], int]:
    """A new folder, and the descriptor that holds its lock."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        lock = _locked(folder.name)
        if lock is not None:
            return folder, lock
        folder.cleanup()


def _locked(folder: str) -> int | None:
    """A descriptor that holds the lock of a new folder; None if another start has removed it meanwhile."""
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    try:
        lock = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = os.path.samestat(os.fstat(lock), os.stat(folder))
    except (BlockingIOError, FileNotFoundError):
        held = False
    except OSError:  # a file system without locks: no start can remove the folder either
        held = True
    if not held:
        os.close(lock)
    return lock if held else None


def _is_trusted(place: os.stat_result) -> bool:
    """Whether only this account and root can rename what this account has in a folder."""
    ours = place.st_uid in (0, os.geteuid())
    shared = bool(place.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return ours and (not shared or bool(place.st_mode & stat.S_ISVTX))


def _remove_if_abandoned(place: int, name: str) -> None:
    """Remove a folder by its descriptor, if it is ours and nobody holds its lock; else raise OSError."""
    folder = os.open(name, _FOLDER, dir_fd=place)
    try:
        facts = os.fstat(folder)
        if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) != stat.S_IRWXU:
            return
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for entry in os.listdir(folder):
            if stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(entry, ignore_errors=True, dir_fd=folder)
            else:
                os.unlink(entry, dir_fd=folder)
        os.rmdir(name, dir_fd=place)  # by its name only when it is empty
    finally:
        os.close(folder)
