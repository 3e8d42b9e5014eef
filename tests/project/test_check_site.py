"""What docs/check_site.py finds in a built site, and what it leaves alone."""

from __future__ import annotations

import pytest

from check_site import problems


def site_of(folder, body, style=""):
    (folder / "picture.png").write_bytes(b"")
    (folder / "style.css").write_text(style)
    (folder / "other.html").write_text('<h1 id="top">Other</h1>')
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
    return folder


@pytest.mark.parametrize(
    "body",
    [
        '<img src="picture.png"> <img src="data:image/png;base64,AA">',
        '<a href="https://example.org/page">to elsewhere</a>',
        '<a href="other.html#top">a page</a> <a id="here" href="#here">this page</a>',
    ],
)
def test_what_is_local_or_a_link_to_follow_is_fine(tmp_path, body):
    assert problems(site_of(tmp_path, body, "p { background: url(picture.png) }")) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<script src="https://example.org/a.js"></script>', "fetched from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "fetched from elsewhere"),
        ('<img src="lost.png">', "lost.png is missing"),
        ('<a href="lost.html">gone</a>', "leads nowhere"),
        ('<a href="other.html#bottom">gone</a>', "no such anchor"),
        ("<style>p { background: url('https://example.org/a.png') }</style>", "its style fetches"),
    ],
)
def test_what_is_fetched_or_missing_is_found(tmp_path, body, problem):
    (found,) = problems(site_of(tmp_path, body))
    assert problem in found


def test_fonts_of_style_sheets_are_found(tmp_path):
    (found,) = problems(site_of(tmp_path, "", "@import 'https://example.org/font.css';"))
    assert found == "style.css: fetches https://example.org/font.css"
