"""Invented files in the 24 columns of the Avazu click log, with its skew, of any size, from a seed.

    python -m experiments.avazu_like 1000000 log.csv.gz --seed 7

What is copied from the real log are proportions: about 83 % of the rows carry one null device, the rest a few
heavy devices and many that appear once; a third of all rows (three quarters of the identified ones) are
inside apps, which share one placeholder site; about 4,700 sites in all; ad attributes that mostly follow from
the creative C14; one click in six. No row, identifier or preference is anybody's. Each device has its own few
favourite sites, so that private distributions are far from their average, as in the log.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = (
    "id", "click", "hour", "C1", "banner_pos", "site_id", "site_domain", "site_category", "app_id",
    "app_domain", "app_category", "device_id", "device_ip", "device_model", "device_type", "device_conn_type",
    "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21",
)  # fmt: skip
NULL_DEVICE, APP_SITE = "a99f214a", "85f751fd"
SITES, CREATIVES, CAMPAIGNS, SOURCES = 4700, 2600, 435, 170
SEED = 20141021
CHUNK = 1 << 20
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint8).reshape(256, 2)
_IDENTIFIED, _FIRST_HOUR = 0.174, 14102100


def generate(rows: int, seed: int = SEED) -> Iterator[pa.Table]:
    """The log in chunks of about a million rows; the same seed and size give the same rows."""
    devices = max(20, int(rows * 0.0675))
    for begin in range(0, rows, CHUNK):
        yield _chunk(begin, min(CHUNK, rows - begin), rows, devices, seed)


def write(
    path: Path, rows: int, seed: int = SEED, progress: Callable[[int], object] = lambda done: None
) -> Path:
    """Write .csv, .csv.gz or .parquet by the extension."""
    chunks = generate(rows, seed)
    if path.suffix == ".parquet":
        first = next(chunks)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as out:
            for part in _and_after(first, chunks):
                out.write_table(part)
                progress(len(part))
        return path
    with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
        for number, part in enumerate(chunks):
            file.write(pl.DataFrame(part).write_csv(include_header=number == 0).encode())
            progress(len(part))
    return path


def _and_after(first: pa.Table, others: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from others


def _chunk(begin: int, size: int, rows: int, devices: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, begin // CHUNK])
    known = rng.random(size) < _IDENTIFIED
    device = _ranks(rng, size, devices, 0.7)  # the few first ones are heavy, the many last ones appear once
    in_app = rng.random(size) < np.where(known, 0.73, 0.28)
    # A device's k-th favourite site is a fixed pseudo-random one; the null device is everybody at once.
    favourite = np.minimum(rng.geometric(0.45, size), 12)
    own = _ranks_of(_mixed(seed, 1, device * 16 + favourite), SITES - 1, 0.95)
    site = np.where(in_app, 0, 1 + np.where(known, own, _ranks(rng, size, SITES - 1, 0.95)))
    app = np.where(in_app, 1 + _ranks(rng, size, 8500, 0.9), 0)
    creative = _ranks(rng, size, CREATIVES, 0.6)
    campaign = _mixed(seed, 2, creative) % CAMPAIGNS
    shape = np.searchsorted([0.93, 0.975, 0.99, 0.997, 0.9985], _unit(seed, 3, creative))
    kind = np.searchsorted([0.72, 0.90], _unit(seed, 4, device))  # phone, other, set-top
    no_type = known & (kind == 1)
    clicks = rng.random(size) < 0.05 + 0.25 * _unit(seed, 5, site)
    source = np.where(rng.random(size) < 0.47, -1, 100_000 + _ranks(rng, size, SOURCES, 0.6))
    hour = (begin + np.arange(size)) * 240 // rows
    return pa.table(
        {
            "id": rng.integers(10**13, np.iinfo(np.uint64).max, size, dtype=np.uint64),
            "click": clicks.astype(np.int8),
            "hour": (_FIRST_HOUR + hour // 24 * 100 + hour % 24).astype(np.int32),
            "C1": np.where(no_type, 1002, np.where(known & (kind == 2), 1010, 1005)).astype(np.int32),
            "banner_pos": np.searchsorted([0.72, 0.998], rng.random(size)).astype(np.int8),
            "site_id": _hex(seed, 10, site, {0: APP_SITE}),
            "site_domain": _hex(seed, 11, site * 7 // 10),
            "site_category": _hex(seed, 12, _mixed(seed, 12, site) % 26),
            "app_id": _hex(seed, 13, app),
            "app_domain": _hex(seed, 14, app % 560),
            "app_category": _hex(seed, 15, _mixed(seed, 15, app) % 36),
            "device_id": _hex(seed, 16, np.where(known, device + 1, 0), {0: NULL_DEVICE}),
            "device_ip": _hex(seed, 17, rng.integers(0, max(20, rows // 6), size)),
            "device_model": _hex(seed, 18, _ranks(rng, size, 8250, 0.8)),
            "device_type": np.where(no_type, 0, np.where(known & (kind == 2), 4, 1)).astype(np.int8),
            "device_conn_type": np.array([0, 2, 3, 5], dtype=np.int8)[
                np.searchsorted([0.86, 0.943, 0.999], rng.random(size))
            ],
            "C14": (375 + creative * 9).astype(np.int32),
            "C15": np.array([320, 300, 216, 728, 480, 1024], dtype=np.int32)[shape],
            "C16": np.array([50, 250, 36, 90, 320, 768], dtype=np.int32)[shape],
            "C17": (112 + campaign * 6).astype(np.int32),
            "C18": np.searchsorted([0.42, 0.49, 0.67], _unit(seed, 6, campaign)).astype(np.int8),
            "C19": (33 + _mixed(seed, 7, campaign) % 68 * 28).astype(np.int32),
            "C20": source.astype(np.int32),
            "C21": (13 + _mixed(seed, 8, campaign) % 60 * 4).astype(np.int32),
        }
    )


def _ranks(rng: np.random.Generator, size: int, most: int, skew: float) -> np.ndarray:
    """Ranks 0..most-1 with frequency about rank^-skew."""
    return _power(rng.random(size), most, skew)


def _ranks_of(mixed: np.ndarray, most: int, skew: float) -> np.ndarray:
    return _power((mixed >> np.uint64(11)) * 2.0**-53, most, skew)


def _power(u: np.ndarray, most: int, skew: float) -> np.ndarray:
    kept = 1 - skew
    rank = (1 + u * ((most + 1.0) ** kept - 1)) ** (1 / kept)
    drawn: np.ndarray = np.minimum(rank.astype(np.int64) - 1, most - 1)
    return drawn


def _mixed(seed: int, stream: int, number: np.ndarray) -> np.ndarray:
    """A fixed pseudo-random 64-bit number for every number (the finalizer of splitmix64)."""
    z = number.astype(np.uint64) + np.uint64((seed * 1000 + stream) * 0x9E3779B97F4A7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _unit(seed: int, stream: int, number: np.ndarray) -> np.ndarray:
    return (_mixed(seed, stream, number) >> np.uint64(11)) * 2.0**-53


def _hex(seed: int, stream: int, number: np.ndarray, named: dict[int, str] | None = None) -> pa.Array:
    """Eight hexadecimal letters for every number; distinct numbers collide once in four billion."""
    words = (_mixed(seed, stream, number) >> np.uint64(32)).astype(">u4")
    for which, name in (named or {}).items():
        words[number == which] = int(name, 16)
    letters = _HEX[words.view(np.uint8)].reshape(-1)
    offsets = np.arange(0, len(letters) + 1, 8, dtype=np.int32)
    return pa.StringArray.from_buffers(len(number), pa.py_buffer(offsets), pa.py_buffer(letters))


def main() -> None:
    """Write a file and say where."""
    parser = argparse.ArgumentParser(description="Write an invented click log in Avazu's columns.")
    parser.add_argument("rows", type=int)
    parser.add_argument("path", type=Path, help=".csv, .csv.gz or .parquet")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    if given.rows < 1 or not str(given.path).endswith((".csv", ".csv.gz", ".gz", ".parquet")):
        parser.error("rows must be at least 1, and the file .csv, .csv.gz or .parquet")
    if not given.path.parent.is_dir():
        parser.error(f"there is no folder {given.path.parent}")
    print(f"written {write(given.path, given.rows, given.seed)}: {given.rows:,} rows, none of them real")


if __name__ == "__main__":
    main()
