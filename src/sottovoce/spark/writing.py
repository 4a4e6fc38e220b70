"""Writing files with Spark, and telling its failures in one line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ..errors import SottovoceError, TableError

_THERE = "is the output there already?"
_Result = TypeVar("_Result")
for _name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)  # they quote the values that failed


def check_new(started: Any, output: str) -> None:
    """Refuse an output that is there already, before anything is counted or anybody charged."""

    def there() -> bool:
        context = started.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(output)
        return bool(path.getFileSystem(context._jsc.hadoopConfiguration()).exists(path))

    if translate_errors(there, "is the output's file system there?"):
        raise TableError(f"{output} cannot be written: it is there already; choose another name")


def write_for_owner(written: Any, output: str) -> None:
    """Write a new folder that only its owner can read, as far as the file system has owners."""
    # Hadoop's local file system ignores its own setting, so a local folder is made here first.
    local = output.removeprefix("file://") if "://" not in output.removeprefix("file://") else None
    writer = written.write.mode("error" if local is None else "append")
    if local is None:
        translate_errors(lambda: writer.option("fs.permissions.umask-mode", "077").parquet(output), _THERE)
        return
    folder = Path(local)
    try:
        folder.mkdir(mode=0o700)
    except OSError as problem:
        raise TableError(f"{output} cannot be written: {problem.strerror} ({_THERE})") from None
    try:
        translate_errors(lambda: writer.parquet(output), _THERE)
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # ours, and empty: Spark takes back what it has not committed
        raise
    for path in folder.iterdir():
        path.chmod(0o600)


def translate_errors(
    call: Callable[[], _Result], hint: str = "a file that is not as it should be, or the cluster"
) -> _Result:
    """Run something in Spark; its errors, which may quote data, become one line without them."""
    reason = ""
    try:
        return call()
    except SottovoceError:
        raise
    except Exception as problem:
        reason = type(problem).__name__
    raise TableError(f"Spark could not do it: {reason} ({hint})")
