"""The page of the service in a real browser: a wrong and a right key, searching, enrolling, removing, the audit."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from simtree import Gallery

pytestmark = pytest.mark.slow

(AXE,) = (Path(__file__).parents[1] / "axe").glob("axe-*.min.js")
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
# Where screenshots are kept, if the variable is set.
PICTURES = os.environ.get("SIMTREE_SCREENSHOTS")


@pytest.fixture
def page(browser, running):
    """The page, at the end of which nothing was complained of and nobody else was asked."""
    context = browser.new_context(viewport=WIDE)
    opened = context.new_page()
    complaints, foreign = [], []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(running.url) else None)
    opened.goto(running.url)
    yield opened
    context.close()
    # The browser itself notes a key that was refused.
    assert [text for text in complaints if "status of 401" not in text] == []
    assert foreign == []


def log_in(page, token):
    page.fill("#key", token)
    page.click("#login button")


def said(page, text):
    """Wait until the page says something."""
    page.wait_for_function("text => document.getElementById('status').textContent.includes(text)", arg=text, timeout=60_000)


def lines(samples):
    return "\n".join(",".join(map(repr, map(float, sample))) for sample in samples)


def serious_problems(page):
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run()).violations")
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]


def too_wide(page):
    """Return what reaches beyond the screen, except in tables, which scroll by themselves."""
    return page.evaluate(
        "() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]"
        ".filter(one => !one.closest('.scroll') && one.getBoundingClientRect().right > innerWidth)"
        ".map(one => one.outerHTML.slice(0, 80))"
    )


def picture(page, name):
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


def test_a_day_at_the_page(page, running):
    """One test, because a browser takes seconds to start: what a person does from the login to the audit."""
    # A wrong key, then the right one, which is kept nowhere.
    token = running.tokens["admin"]
    log_in(page, token[:-1] + ("a" if token[-1] != "a" else "b"))
    said(page, "a valid key is needed.")
    assert page.is_hidden("#work")
    assert serious_problems(page) == []
    log_in(page, token)
    said(page, "Logged in.")
    assert page.is_visible("#identify-section")
    assert page.input_value("#key") == ""
    stored = page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href])")
    assert token.split(".")[1] not in stored
    assert json.loads(stored)[:3] == ["", {}, {}]

    # Identify from a file whose columns are in another order, with one that is not needed.
    text = "x3;x2;note;x1;x0\n" + "\n".join(
        ";".join([repr(float(q[3])), repr(float(q[2])), '"a;b"', repr(float(q[1])), repr(float(q[0]))])
        for q in running.queries[3:5]
    )
    page.set_input_files("#file", {"name": "queries.csv", "mimeType": "text/csv", "buffer": text.encode()})
    said(page, "Read: queries.csv.")
    page.fill("#k", "3")
    page.click("#identify button")
    said(page, "Searched for 2 samples.")
    with Gallery.open(running.folder / "people.gallery", readonly=True) as gallery:
        expected = gallery.identify(running.queries[3:5], k=3, max_fpir=0.05, keep_below=True)
    cells = page.eval_on_selector_all(
        "#found tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert [row[1] for row in cells] == expected.id.tolist()
    assert [float(row[2]) for row in cells] == pytest.approx(expected.score.tolist(), rel=1e-3)
    # A probability is that of a pair, and whoever has several samples has none.
    told = [math.nan if row[3] == "\u2013" else float(row[3]) for row in cells]
    assert {math.isnan(probability) for probability in told} == {True, False}
    assert told == pytest.approx(expected.probability.tolist(), rel=1e-2, nan_ok=True)
    assert [float(row[4]) for row in cells] == pytest.approx(expected.expected_false_matches.tolist(), rel=1e-2)
    assert [row[5] for row in cells] == ["candidate" if score >= expected.threshold else "below" for score in expected.score]
    promise = page.text_content("#promise")
    assert f"Threshold {float(f'{expected.threshold:.4g}')}." in promise
    assert expected.promise in promise
    assert "Expected share of strangers with a candidate" in promise
    page.click('button[aria-label="Explain p03"]')
    said(page, "Explained p03.")
    assert len(page.query_selector_all("#found .bars li")) == 4
    assert serious_problems(page) == []
    picture(page, "service_identify")

    # What is wrong with samples is said before anything is sent.
    for content, sentence in (
        ("", "Type a sample"),
        ("1,2,3", "has 3 values, and 4 are needed"),
        ("1,2,x,4\n1,2,3,4", "feature x0"),
    ):
        page.fill("#samples", content)
        page.click("#identify button")
        said(page, sentence)

    # Enrol; a sample that matches somebody else is reported, and markup in an id is text.
    name = "<b>ann</b> & co"
    page.fill("#enrol-id", name)
    page.fill("#enrol-samples", lines(running.queries[[3]]))
    page.click("#enrol button")
    said(page, f"Enrolled: 1 sample of {name}. Check whether p03 is the same")
    assert "21 identities" in page.text_content("#facts")
    page.fill("#prefix", "<b>")
    page.click("#list button")
    said(page, "Listed: 1 identity.")
    page.click(f'button[aria-label="Look at {name}"]')
    page.wait_for_function("() => document.getElementById('about').textContent.includes('1 sample')")

    # Removing asks first, and cancelling changes nothing.
    page.click(f'button[aria-label="Remove {name}"]')
    assert page.is_visible("#confirm")
    assert page.text_content("#confirm-id") == name
    assert serious_problems(page) == []
    page.keyboard.press("Escape")
    assert page.is_hidden("#confirm")
    with Gallery.open(running.folder / "people.gallery", readonly=True) as gallery:
        assert name in gallery
    page.click(f'button[aria-label="Remove {name}"]')
    page.click("#confirm button.danger")
    said(page, f"Removed: {name} with 1 sample.")
    with Gallery.open(running.folder / "people.gallery", readonly=True) as gallery:
        assert name not in gallery

    # The audit has it all, with the id of the key.
    page.click("#audit button")
    said(page, "Read: ")
    rows = page.eval_on_selector_all("#calls tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    ours = [row[2] for row in rows if row[1] == token.split(".")[0]]
    assert [action for action in ours if action in ("enrol", "remove", "identify", "explain")][:4] == [
        "remove", "enrol", "explain", "identify",
    ]  # fmt: skip
    assert serious_problems(page) == []
    picture(page, "service_audit")

    # A phone: nothing is wider than the screen. Dark mode has enough contrast as well.
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    assert too_wide(page) == []
    assert serious_problems(page) == []
    picture(page, "service_phone")

    page.click("#logout")
    assert page.is_hidden("#work")
    assert page.text_content("#found") == page.text_content("#calls") == ""


def test_a_key_sees_only_what_it_may_do(page, running):
    log_in(page, running.tokens["identify"])
    said(page, "Logged in.")
    assert page.is_visible("#identify-section")
    assert page.is_hidden("#people-section")
    assert page.is_hidden("#audit-section")
    # By keyboard alone: from the textarea to the search.
    page.focus("#samples")
    page.keyboard.type(lines(running.queries[:1]))
    for _ in range(4):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Search"
    page.keyboard.press("Enter")
    said(page, "Searched for 1 sample.")
    assert page.text_content("#found tbody td:nth-child(2)") == "p00"


def test_cells_are_what_the_model_was_fitted_on(page, running):
    """Words, dates, true and false and empty cells are sent as they are, and an odd cell among numbers is named."""
    kinds = ["category", "number", "boolean", "date"]

    def describe(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "kinds": kinds, "takes_missing": True})

    sent = []

    def search(route):
        sent.append(json.loads(route.request.post_data))
        route.fulfill(json={"results": []}, status=200)

    page.route("**/v1/gallery", describe)
    page.route("**/v1/identify", search)
    log_in(page, running.tokens["admin"])
    said(page, "Logged in.")
    page.fill("#samples", 'x1,x3,x0,x2\n1.5,2000-01-31,"Rome, Italy",True\n,,7,false')
    page.click("#identify button")
    page.wait_for_function("() => document.getElementById('identify').querySelector('button').disabled === false")
    assert sent[0]["samples"] == [["Rome, Italy", 1.5, True, "2000-01-31"], ["7", None, False, None]]
    page.fill("#samples", "Rome,tall,true,2000-01-31")
    page.click("#identify button")
    said(page, "Sample 1 has no number for the feature x1.")
    assert len(sent) == 1
