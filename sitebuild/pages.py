"""A hook of mkdocs: files of the repository join the site, and nothing in the site comes from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from sitebuild.links import ELSEWHERE, PAGES, ROOT, place_of, rewritten, targets_of
from sottovoce.cli.explore import DEMO
from sottovoce.cli.explore import page as explorer
from sottovoce.demo import demo_data
from sottovoce.groups import Groups


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root, and everything that any page links to."""
    waiting = [*PAGES, *(f"docs/{page.src_uri}" for page in files.documentation_pages())]
    seen: set[str] = set()
    while waiting:
        source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        if source.endswith(".md"):
            text = (ROOT / source).read_text(encoding="utf-8")
            waiting += targets_of(source, text)
            if not source.startswith("docs/"):
                page = File.generated(config, place_of(source), content=rewritten(source, text))
                page.inclusion = InclusionLevel.INCLUDED if source in PAGES else InclusionLevel.NOT_IN_NAV
                files.append(page)
        elif not source.startswith("docs/"):
            files.append(File.generated(config, place_of(source), abs_src_path=str(ROOT / source)))
    demo = explorer(Groups(demo_data().priors, "group"), DEMO)
    files.append(File.generated(config, "try.html", content=demo))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of the pages that mkdocs read from docs/ itself."""
    source = f"docs/{page.file.src_uri}"
    return rewritten(source, markdown) if (ROOT / source).is_file() else markdown


def on_post_build(config: Any) -> None:
    """Refuse a site that would fetch a script, a style, a font or a picture from another host."""
    for file in sorted(Path(config.site_dir).rglob("*")):
        if file.suffix in (".html", ".css", ".svg"):
            found = ELSEWHERE.search(file.read_text(encoding="utf-8"))
            if found:
                raise PluginError(f"{file.name} fetches from another host: {found[0]}")
