"""Check that a built site needs no network: no script, style sheet, font or picture comes from elsewhere.

Run ``python docs/check_site.py docs/_build/html``; ``make docs`` and ``make docs-check`` do so.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address a browser fetches by itself. A link that a reader follows may lead elsewhere.
FETCHED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
}
IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class _Page(HTMLParser):
    """Collect what a page fetches, what it links to, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one start tag."""
        found = {name: value or "" for name, value in attrs}
        self.fetched += [found[name].split()[0] for name in FETCHED.get(tag, ()) if found.get(name)]
        if tag == "a" and found.get("href"):
            self.linked.append(found["href"])
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}


def problems(site: Path) -> list[str]:
    """Return one sentence for each address that is fetched from elsewhere, and for each file or anchor that is missing."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        if "_static" in file.relative_to(site).parts:  # templates of the theme, not pages
            continue
        pages[file.resolve()] = page = _Page()
        page.feed(file.read_text(encoding="utf-8"))
    found = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        for address in page.fetched:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                found.append(f"{name}: {address} is fetched from elsewhere")
            elif not (file.parent / unquote(parts.path)).exists():
                found.append(f"{name}: {address} is missing")
        for address in page.linked:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.exists():
                found.append(f"{name}: the link to {address} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {address} has no such anchor")
        found += [f"{name}: its style fetches {address}" for address in IN_STYLE.findall(file.read_text(encoding="utf-8"))]
    for file in sorted(site.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        found += [f"{file.relative_to(site)}: fetches {address}" for address in IN_STYLE.findall(text)]
    return found


def main() -> None:
    """Print the problems of a site; exit with 1 if there is one."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.exit(f"{site} has no index.html: build the site first.")
    found = problems(site)
    sys.exit("\n".join(found) if found else None)


if __name__ == "__main__":
    main()
