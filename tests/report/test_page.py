"""The report in a real browser: the slider, the tree, phones, dark mode, print, the keyboard, and accessibility."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import simtree.report
from report_people import held_out, model_of
from simtree import evaluate
from simtree.report._words import percent, plain

pytestmark = pytest.mark.slow

AXE = Path(__file__).parents[1] / "axe" / "axe-4.10.3.min.js"
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    X, y, camera = held_out()
    for kind in ("tree", "forest"):
        options = {"by": camera} if kind == "tree" else {"enrolled": (1, 2, 3)}
        simtree.report.write(model_of(kind), X, y, folder / f"{kind}.html", **options)
    return folder


@pytest.fixture(scope="module")
def result():
    """What the library says of the forest."""
    X, y, _ = held_out()
    return evaluate(model_of("forest"), X, y, threshold=model_of("forest").threshold_, simultaneous=True)


@pytest.fixture
def opened(browser, files):
    """A function that opens a page and waits for its charts; at the end there were no requests and nothing on the console."""
    contexts, complaints = [], []

    def open_page(kind, **options):
        context = browser.new_context(**{"viewport": WIDE, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request", lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else 0
        )
        page.goto((files / f"{kind}.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def text_of(page, name):
    return page.text_content(f"#{name}")


def drawn(page, marks):
    """What is drawn of the last mark of each selector."""
    return [page.inner_html(f"{mark} >> nth=-1") for mark in marks]


def wait_until_redrawn(page, marks, before):
    """Wait until all of the marks have changed; charts are drawn in a later frame."""
    last = "([marks, before]) => marks.every((mark, k) => [...document.querySelectorAll(mark)].at(-1).innerHTML !== before[k])"
    page.wait_for_function(last, arg=[marks, before])


def move_to(page, place):
    """Move the slider as a mouse does: set its value, and tell the page."""
    page.eval_on_selector(
        "#slider",
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }",
        place,
    )


def test_the_slider_shows_the_numbers_of_the_library(opened, result):
    page = opened("forest")
    band, n = result.simultaneous, len(result.simultaneous.thresholds)
    used = int(page.input_value("#slider"))
    assert band.thresholds[n - 1 - used] == model_of("forest").threshold_
    assert text_of(page, "at-mark") == "guaranteed threshold"
    page.fill("#gallery", "5000")
    for k in (0, n // 3, n - 1):
        move_to(page, str(n - 1 - k))
        fpr, tpr, ends = float(band.fpr[k]), float(band.tpr[k]), band.fpr_interval[k].tolist()
        assert float(text_of(page, "at-threshold")) == pytest.approx(band.thresholds[k], rel=1e-4)
        assert text_of(page, "at-fpr") == percent(fpr)
        assert text_of(page, "at-fpr-bounds") == f"{percent(ends[0])} to {percent(ends[1])}"
        assert text_of(page, "at-tpr") == percent(tpr)
        assert text_of(page, "at-matches") == plain(5000 * fpr)
        assert text_of(page, "at-matches-bounds") == f"{plain(5000 * ends[0])} to {plain(5000 * ends[1])}"
        assert text_of(page, "command-set").endswith(f" {json.dumps(float(band.thresholds[k]))}")
        assert text_of(page, "at-mark") == "not guaranteed"
        assert percent(fpr) in page.get_attribute("#slider", "aria-valuetext")
    page.click("#to-used")
    assert int(page.input_value("#slider")) == used


def test_dragging_the_slider_moves_the_point_on_the_curves(opened, result):
    page = opened("forest")
    marks = ["#chart-roc .mark-symbol", "#chart-det .mark-symbol", "#chart-scores .mark-rule"]
    before = drawn(page, marks)
    page.locator("#slider").scroll_into_view_if_needed()
    box = page.locator("#slider").bounding_box()
    y = box["y"] + box["height"] / 2
    n, used = len(result.simultaneous.thresholds), int(page.input_value("#slider"))
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) * used / (n - 1), y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.15, y, steps=3)
    page.mouse.up()
    chosen = n - 1 - int(page.input_value("#slider"))
    assert chosen > n / 2
    assert text_of(page, "at-tpr") == percent(float(result.simultaneous.tpr[chosen]))
    wait_until_redrawn(page, marks, before)


def test_costs_follow_prices_and_the_cheapest_threshold_is_found(opened, result):
    page = opened("forest")
    for field, value in (("traffic", "200"), ("impostors", "50"), ("price-accept", "10"), ("price-reject", "4")):
        page.fill(f"#{field}", value)
    band = result.simultaneous
    costs = 200 * (0.5 * band.fpr * 10 + 0.5 * (1 - band.tpr) * 4)
    page.click("#to-cheapest")
    k = len(costs) - 1 - int(page.input_value("#slider"))
    assert costs[k] == pytest.approx(costs.min())
    assert text_of(page, "at-cost") == plain(float(costs[k]))
    page.fill("#price-accept", "-1")
    assert text_of(page, "at-cost") == "give numbers"
    assert page.get_attribute("#price-accept", "aria-invalid") == "true"


def test_a_command_is_copied(opened):
    page = opened("forest", permissions=["clipboard-read", "clipboard-write"])
    page.click("button[data-copy=command-calibrate]")
    page.wait_for_function("() => document.getElementById('copied').textContent !== ''")
    command = text_of(page, "command-calibrate")
    assert re.fullmatch(r"simtree calibrate MODEL\.simtree OTHER\.csv --label LABEL --max-fpr \d[\d.e-]*", command)
    assert page.evaluate("navigator.clipboard.readText()") == command


def test_a_cell_shows_its_rule_and_its_segment(opened):
    page = opened("tree")
    tree = json.loads(page.text_content("#data"))["tree"]
    cells = tree["cells"]
    segment = drawn(page, ["#chart-segment .mark-line"])
    inside, outside = cells[0]["children"]
    page.click(f"[data-cell='{outside}']")
    words = text_of(page, "cell")
    assert all(rule in words for rule in cells[0]["rule"])
    assert f"{cells[outside]['same']:,} same pairs" in words
    assert f"TPR {percent(cells[outside]['tpr'][0])} to {percent(cells[outside]['tpr'][1])}" in words
    wait_until_redrawn(page, ["#chart-segment .mark-line"], segment)
    # The keyboard: up to the parent, close it, open it again, and go to the more similar child.
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator("[role=treeitem]").count() == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("[aria-selected=true]", "data-cell") == str(inside)
    assert page.evaluate("document.activeElement.dataset.cell") == str(inside)
    page.click("#open-all")
    assert page.locator("[role=treeitem]").count() == len(cells)


def test_everything_can_be_reached_by_the_keyboard(opened):
    page = opened("tree")
    expected = page.evaluate(
        "[...document.querySelectorAll('a[href], button, input, [tabindex=\"0\"]')].filter(e => e.tabIndex >= 0).length"
    )
    reached = set()
    for _ in range(expected + 5):
        page.keyboard.press("Tab")
        place = page.evaluate(
            "(() => { const e = document.activeElement, all = [...document.querySelectorAll('*')];"
            " return e === document.body ? null : [all.indexOf(e), getComputedStyle(e).outlineStyle]; })()"
        )
        if place is None:
            break
        assert place[1] != "none", "the focus is visible"
        reached.add(place[0])
    assert len(reached) == expected
    page.focus("#slider")
    before = text_of(page, "at-threshold")
    page.keyboard.press("ArrowRight")
    assert text_of(page, "at-threshold") != before


@pytest.mark.parametrize(
    ("kind", "look"), [("tree", "light"), ("tree", "dark"), ("tree", "phone"), ("tree", "print"), ("forest", "dark")]
)
def test_every_look_is_readable(opened, kind, look):
    options = {"viewport": PHONE} if look == "phone" else {"color_scheme": look if look == "dark" else "light"}
    page = opened(kind, **options)
    if look == "print":
        page.emulate_media(media="print")
        assert page.locator("button:visible:not(.cell)").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page does not scroll sideways"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 24, 29)" if look == "dark" else "rgb(255, 255, 255)"
    )
    widths = page.eval_on_selector_all(".chart svg", "charts => charts.map(c => [c.clientWidth, c.parentElement.clientWidth])")
    assert all(0 < width <= place + 1 for width, place in widths)
    # axe runs in the page, as its policy would not let it be loaded.
    page.evaluate(AXE.read_text() + "\n;0")
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert not serious, [(v["id"], [node["html"][:160] for node in v["nodes"]][:3]) for v in serious]


def test_the_whole_tree_fits_on_paper(opened):
    page = opened("tree", viewport={"width": 720, "height": 1000})
    page.click("#open-all")
    n_cells = page.locator(".cell").count()
    assert page.evaluate("document.getElementById('tree').scrollWidth") > 720
    page.emulate_media(media="print")
    assert page.locator(".cell:visible").count() == n_cells
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
    right = "[...document.querySelectorAll('.cell')].map(cell => cell.getBoundingClientRect().right)"
    assert page.evaluate(f"Math.max(...{right}) <= document.querySelector('.tree-scroll').getBoundingClientRect().right")


def test_without_javascript_the_figures_are_there(browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((files / "forest.html").as_uri())
    assert "attempts by a stranger" in page.text_content("main")
    assert page.locator("noscript").count() == 1
    context.close()
