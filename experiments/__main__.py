"""`make figures`: the pictures and tables of the documents, from the data that are there.

Real data are read from the folder named by the environment variable SOTTOVOCE_DATA: the official folders
ml-100k and ml-1m, and avazu with the log (train.gz) or a small sample of it (any .csv). Without it the Avazu
experiment runs on invented data in the same format.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from sottovoce.demo import demo_comparison, demo_data
from sottovoce.pictures.plots import demo_picture

from . import avazu, avazu_like, films, movielens, recursion, shuffling_rivals, synthetic
from .documents import ROOT, update, write_block

ROWS = 1_000_000
SHOWN = (
    "recursion-figure1.png",
    "recursion-figure5.png",
    "synthetic.png",
    "synthetic-figure2.png",
    "movielens-figure4.png",
    "movielens-figure12.png",
    "movielens-appendix.png",
    "avazu-like-C18.png",
    "avazu-like-figure3.png",
    *(f"avazu-like-figure{number}.png" for number in range(6, 12)),
)
"""The pictures that the documents show; those of the invented log stand in for those of Avazu."""


def main() -> None:
    """Make everything anew and say what was written and what was skipped."""
    images, results = ROOT / "docs" / "images", ROOT / "results"
    images.mkdir(parents=True, exist_ok=True)
    data = demo_data()
    written = [demo_picture(data, demo_comparison(data), images / "demo.png"), *recursion.run(results)]
    written += synthetic.run(results)
    write_block("docs/guarantees.md", "rivals", shuffling_rivals.table())
    place = os.environ.get("SOTTOVOCE_DATA")
    folder = Path(place) if place else None
    written += run_movielens(folder, results)
    written += run_avazu(folder, results)
    for path in written:
        if path.name in SHOWN:
            shutil.copy(path, images / path.name)
        print(f"written   {path.relative_to(ROOT)}")
    changed = update()
    print(f"tables    {', '.join(changed) if changed else 'all up to date'}")


def run_movielens(folder: Path | None, results: Path) -> list[Path]:
    """Both counting rules, if the data are there."""
    if folder is None or not ((folder / "ml-1m").is_dir() and (folder / "ml-100k").is_dir()):
        print("skipped   MovieLens: set SOTTOVOCE_DATA to the folder that holds ml-100k and ml-1m")
        return []
    written: list[Path] = []
    for counting in movielens.COUNTING:
        paths, rows = movielens.run(folder, results, counting)
        print(f"\nMovieLens, {counting}\n{movielens.summary(rows)}\n")
        if counting == movielens.COUNTING[0]:
            write_block("docs/experiments.md", "movielens", movielens.summary(rows))
            write_block("docs/experiments.md", "maxima", movielens.maxima(rows))
        written += paths
    for prior in films.PRIORS:
        found = films.summary(folder, prior, films.measure(folder, prior))
        print(f"\nFilms, prior {prior}\n{found}\n")
        if prior == films.PRIORS[0]:
            write_block("docs/experiments.md", "films", found)
    return written


def run_avazu(folder: Path | None, results: Path) -> list[Path]:
    """The log if it is there, its sample if there is one, and always an invented log of a million rows."""
    written: list[Path] = []
    log = folder / "avazu" / "train.gz" if folder is not None else None
    samples = sorted((folder / "avazu").glob("*.csv")) if folder is not None else []
    if log is not None and log.is_file():
        written += avazu.run(log, results)[0]
    else:
        print("skipped   Avazu: SOTTOVOCE_DATA has no avazu/train.gz")
    if samples:
        few = avazu.Rules(rows_per_device=2, devices_per_value=5)
        paths, _ = avazu.run(samples[0], results, rules=few, stem="avazu-sample", title="a sample of Avazu")
        written += paths
    else:
        print("skipped   the Avazu sample: SOTTOVOCE_DATA has no avazu/*.csv")
    with tempfile.TemporaryDirectory() as temporary:
        invented = avazu_like.write(Path(temporary) / "log.csv.gz", ROWS)
        paths, rows = avazu.run(invented, results, stem="avazu-like", title="Invented log in Avazu's format")
    won = avazu.summary(rows)
    print(f"\nInvented log of {ROWS:,} rows\n{won}\n")
    write_block("docs/experiments.md", "avazu-like", won)
    return [*written, *paths]


if __name__ == "__main__":
    main()
