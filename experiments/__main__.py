"""`make figures`: the pictures and tables of the documents."""

from __future__ import annotations

from sottovoce.demo import demo_comparison, demo_data
from sottovoce.plots import demo_picture

from .documents import ROOT, update


def main() -> None:
    """Make everything anew and say what was written."""
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    data = demo_data()
    picture = demo_picture(data, demo_comparison(data), images / "demo.png")
    print(f"picture   {picture.relative_to(ROOT)}")
    changed = update()
    print(f"tables    {', '.join(changed) if changed else 'all up to date'}")


if __name__ == "__main__":
    main()
