"""`make figures`: the pictures and tables of the documents, from the data that are there.

MovieLens is read from the folder named by the environment variable SOTTOVOCE_DATA, which holds the official
folders ml-100k and ml-1m.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sottovoce.demo import demo_comparison, demo_data
from sottovoce.plots import demo_picture

from . import movielens, synthetic
from .documents import ROOT, update


def main() -> None:
    """Make everything anew and say what was written and what was skipped."""
    images = ROOT / "docs" / "images"
    results = ROOT / "results"
    images.mkdir(parents=True, exist_ok=True)
    data = demo_data()
    written = [demo_picture(data, demo_comparison(data), images / "demo.png"), *synthetic.run(results)]
    place = os.environ.get("SOTTOVOCE_DATA")
    folder = Path(place) if place else None
    if folder is not None and (folder / "ml-1m").is_dir() and (folder / "ml-100k").is_dir():
        for counting in movielens.COUNTING:
            written += movielens.run(folder, results, counting)
            print(f"\nMovieLens, {counting}\n{movielens.summary(movielens.measure(folder, counting))}\n")
    else:
        print("skipped   MovieLens: set SOTTOVOCE_DATA to the folder that holds ml-100k and ml-1m")
    for path in written:
        if path.name in ("synthetic.png", "movielens.png"):
            shutil.copy(path, images / path.name)
        print(f"written   {path.relative_to(ROOT)}")
    changed = update()
    print(f"tables    {', '.join(changed) if changed else 'all up to date'}")


if __name__ == "__main__":
    main()
