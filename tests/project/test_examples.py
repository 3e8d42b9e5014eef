"""Every example of the gallery runs, draws something, and is short."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from simtree import SimilarityForest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def smaller(fit):
    """Fit a forest of a few small trees: `make docs` runs the examples as they are."""

    def fit_smaller(self, *arguments, **options):
        n_pairs = min(self.n_pairs or 5_000, 5_000)
        return fit(self.set_params(n_estimators=min(self.n_estimators, 20), n_pairs=n_pairs), *arguments, **options)

    return fit_smaller


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    drawn = []

    def show():
        for number in plt.get_fignums():
            figure = plt.figure(number)
            figure.canvas.draw()
            drawn.append(any(ax.has_data() or ax.texts for ax in figure.axes))
        plt.close("all")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", show)
        patch.setattr(SimilarityForest, "fit", smaller(SimilarityForest.fit))
        runpy.run_path(str(path))
    assert drawn
    assert all(drawn)
    assert capsys.readouterr().out.strip(), "an example prints something"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_in_the_gallery(path):
    assert len(path.read_text().splitlines()) <= 80
    order = (ROOT / "docs" / "example_order.py").read_text()
    assert f'"{path.name}"' in order, f"give {path.name} a place in docs/example_order.py"


def test_there_are_enough_examples():
    assert len(EXAMPLES) >= 9
