"""Take the pictures of docs/report.md in Chromium: docs/images/report*.png.

Run ``make demo``, and then ``python docs/make_screenshots.py demo/report.html``. Chromium comes with ``make system-deps``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from sklearn.datasets import load_iris

import simtree.report

IMAGES = Path(__file__).parent / "images"
WIDE, NARROW, PHONE = {"width": 1100, "height": 1190}, {"width": 760, "height": 1190}, {"width": 390, "height": 1190}


def write_tree(page: Path) -> None:
    """Write the report of a tree that can be read, on the sizes of irises."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = [name.removesuffix(" (cm)") for name in X.columns]
    tree = simtree.SimilarityTree(max_depth=4, splitter="cut", random_state=0).fit(X[::2], y[::2])
    simtree.report.write(tree, X[1::2], y[1::2], page, unit="samples")


def open_page(browser: Any, page: Path, **options: Any) -> Any:
    """Return a report after its charts are drawn."""
    opened = browser.new_context(**options).new_page()
    opened.goto(page.resolve().as_uri())
    opened.wait_for_selector("html[data-ready]")
    return opened


def main(report: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = open_page(browser, report, viewport=WIDE)
        page.screenshot(path=IMAGES / "report.png")
        top, bottom = (page.locator(f"#chart-{name}").bounding_box() for name in ("roc", "scores"))
        clip = {"x": 20, "y": top["y"] - 15, "width": 1060, "height": bottom["y"] + bottom["height"] + 50 - top["y"]}
        page.screenshot(path=IMAGES / "report_curves.png", clip=clip, full_page=True)
        open_page(browser, report, viewport=NARROW, color_scheme="dark").screenshot(path=IMAGES / "report_dark.png")
        open_page(browser, report, viewport=PHONE).screenshot(path=IMAGES / "report_phone.png")
        write_tree(Path(folder) / "tree.html")
        page = open_page(browser, Path(folder) / "tree.html", viewport=WIDE)
        page.click("#open-all")
        page.click("[data-cell='3']")
        page.locator("section[aria-labelledby=model]").screenshot(path=IMAGES / "report_tree.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
