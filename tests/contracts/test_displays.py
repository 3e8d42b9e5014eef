"""What every display must do: draw in a new figure, on given axes, in a part of a figure, again; refuse clearly."""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
from every_display import DISPLAYS
from sklearn.exceptions import NotFittedError

import simtree.plots
from simtree import SimilarityTree

every_display = pytest.mark.parametrize(
    ("display", "arguments"), [pytest.param(*entry, id=name) for name, entry in DISPLAYS.items()]
)


@pytest.fixture(autouse=True)
def _close_figures():
    plt.close("all")  # those that tests of other modules left open
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tree(blobs):
    return SimilarityTree(max_depth=5, random_state=0).fit(*blobs)


def test_the_list_is_complete():
    public = {name for name in simtree.plots.__all__ if name.endswith("Display")}
    assert {display.__name__ for display, _ in DISPLAYS.values()} == public


@every_display
def test_a_display_draws_in_a_new_figure(tree, display, arguments):
    drawn = display.from_estimator(tree, **arguments)
    assert isinstance(drawn, display)
    assert drawn.ax_.figure is drawn.figure_
    drawn.figure_.canvas.draw()


@pytest.mark.slow
@every_display
def test_a_display_draws_on_given_axes(tree, display, arguments):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    drawn = display.from_estimator(tree, ax=axes[1], **arguments)
    assert drawn.ax_ is axes[1]
    assert drawn.figure_ is figure
    assert not axes[0].has_data()
    assert plt.get_fignums() == [figure.number]
    figure.draw_without_rendering()


@every_display
def test_a_display_draws_in_a_subfigure(tree, display, arguments):
    part = plt.figure().subfigures(1, 2)[0]
    drawn = display.from_estimator(tree, ax=part.subplots(), **arguments)
    assert drawn.figure_ is part


@pytest.mark.slow
@every_display
def test_a_display_draws_twice(tree, display, arguments):
    drawn = display.from_estimator(tree, **arguments)
    first = drawn.ax_
    again = drawn.plot()
    assert again is drawn
    assert drawn.ax_ is not first
    n_artists = len(first.get_children())
    assert drawn.plot(first).ax_ is first
    assert len(first.get_children()) - n_artists <= 4  # a curve, its band and two marks; no second frame
    drawn.figure_.draw_without_rendering()


@every_display
def test_a_display_does_not_show(tree, display, arguments, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("plt.show was called"))
    display.from_estimator(tree, **arguments)


@every_display
def test_an_unfitted_estimator_is_refused(display, arguments):
    with pytest.raises(NotFittedError):
        display.from_estimator(SimilarityTree(), **arguments)
    assert not plt.get_fignums()


@every_display
def test_without_matplotlib_the_extra_is_named(tree, display, arguments, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "simtree\[plot\]"'):
        display.from_estimator(tree, **arguments)
