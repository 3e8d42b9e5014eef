"""Take the pictures of docs/report.md and docs/service.md in Chromium: docs/images/report*.png and service.png.

Run ``make demo``, and then ``python docs/make_screenshots.py demo/report.html``. Chromium comes with ``make system-deps``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_iris

import simtree.report
from simtree.service._keys import add_key

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from running_service import Service, make_model, people

IMAGES = Path(__file__).parent / "images"
WIDE, NARROW, PHONE = {"width": 1100, "height": 1190}, {"width": 760, "height": 1190}, {"width": 390, "height": 1190}
TOP, SERVICE = {"width": 1100, "height": 1080}, {"width": 1120, "height": 1400}


def write_tree(page: Path) -> None:
    """Write the report of a tree that can be read, on the sizes of irises."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = [name.removesuffix(" (cm)") for name in X.columns]
    tree = simtree.SimilarityTree(max_depth=4, splitter="cut", random_state=0).fit(X[::2], y[::2])
    simtree.report.write(tree, X[1::2], y[1::2], page, unit="samples")


def write_guaranteed(page: Path) -> None:
    """Write the report of a forest whose threshold has a guarantee: there are ten digits, and many simulated people."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(900), 3)
    X = rng.normal(size=(900, 8))[y] + 0.35 * rng.normal(size=(len(y), 8))
    train, tune, test = slice(0, 900), slice(900, 1800), slice(1800, 2700)
    forest = simtree.SimilarityForest(n_estimators=20, n_pairs=20_000, random_state=0).fit(X[train], y[train])
    forest.calibrate_threshold(X[tune], y[tune], max_fpr=0.01)
    simtree.report.write(forest, X[test], y[test], page, title="Same person? A threshold with a guarantee")


def start_service(folder: Path) -> tuple[Service, str, np.ndarray]:
    """Start a service with one sample of each of twenty people; return it with a key and another sample of each."""
    X, y = people(20, 2, 1)
    with simtree.Gallery.create(folder / "people.gallery", make_model()) as gallery:
        gallery.enroll([f"p{k:02d}" for k in y[::2]], X[::2])
        strangers, who = people(120, 1, 2)
        gallery.calibrate(strangers, [f"stranger {k}" for k in who], max_fpir=0.05)
    token = add_key(folder / "keys.json", ["admin"], note="for the picture")[1]
    return Service(folder / "people.gallery", "--keys", folder / "keys.json"), token, X[1::2]


def take_service(browser: Any, folder: Path) -> None:
    """Search for two people on the page of a service, and ask why the first one was found."""
    service, token, queries = start_service(folder)
    try:
        page = browser.new_context(viewport=SERVICE).new_page()
        page.goto(service.url)
        page.fill("#key", token)
        page.click("#login button")
        page.fill("#samples", "\n".join(",".join(f"{value:.4f}" for value in query) for query in queries[3:5]))
        page.fill("#k", "3")
        page.click("#identify button")
        page.click('button[aria-label="Explain p03"]')
        page.wait_for_selector("#found .bars li")
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=IMAGES / "service.png")
    finally:
        service.close()


def open_page(browser: Any, page: Path, **options: Any) -> Any:
    """Return a report after its charts are drawn."""
    opened = browser.new_context(**options).new_page()
    opened.goto(page.resolve().as_uri())
    opened.wait_for_selector("html[data-ready]")
    return opened


def main(report: Path) -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = open_page(browser, report, viewport=WIDE)
        page.screenshot(path=IMAGES / "report.png")
        top, bottom = (page.locator(f"#chart-{name}").bounding_box() for name in ("roc", "scores"))
        clip = {"x": 20, "y": top["y"] - 15, "width": 1060, "height": bottom["y"] + bottom["height"] + 50 - top["y"]}
        page.screenshot(path=IMAGES / "report_curves.png", clip=clip, full_page=True)
        open_page(browser, report, viewport=NARROW, color_scheme="dark").screenshot(path=IMAGES / "report_dark.png")
        open_page(browser, report, viewport=PHONE).screenshot(path=IMAGES / "report_phone.png")
        write_guaranteed(folder / "guaranteed.html")
        open_page(browser, folder / "guaranteed.html", viewport=TOP).screenshot(path=IMAGES / "report_guaranteed.png")
        write_tree(folder / "tree.html")
        page = open_page(browser, folder / "tree.html", viewport=WIDE)
        page.click("#open-all")
        page.click("[data-cell='3']")
        page.locator("section[aria-labelledby=model]").screenshot(path=IMAGES / "report_tree.png")
        take_service(browser, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
