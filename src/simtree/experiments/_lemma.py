"""What the paper's f cannot see when points have two features or more, and how oblique coordinates repair it."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree.experiments._maps import draw_map, grid, scatter_kinds
from simtree.experiments._results import Order, RunLog, Values, markdown_table, mean_and_spread, write_figure, write_result
from simtree.models._tree import SimilarityTree
from simtree.pairs._coordinates import pair_features
from simtree.plots import FAINT, INK

Floats = NDArray[np.float64]

STRAIGHT_PAIR = ((0.0, 0.0), (1.0, 1.0))
CROSSED_PAIR = ((0.0, 1.0), (1.0, 0.0))
# The directions w of |w . (x - x')|, each of length one.
DIRECTIONS = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2.0)
# How many of the directions each tree is given.
LEARNERS = {"f alone": 0, "f and one oblique coordinate": 1, "f and two oblique coordinates": 2}
DEPTH = 8
MOST_FEATURES = 6
GRID = 300


class Sizes(NamedTuple):
    """How many training pairs, fresh pairs, and pairs that are drawn as marks."""

    pairs: int = 20_000
    fresh: int = 100_000
    marks: int = 400


def run(order: Order, *, sizes: Sizes | None = None) -> None:
    """Show the counter-example, learn with and without oblique coordinates, write ``lemma.*``; the picture is of run 0."""
    sizes = Sizes() if sizes is None else sizes
    log = RunLog(order.out / "lemma.runs.jsonl", {"seed": order.seed, "sizes": sizes, "depth": DEPTH})
    tasks = {f"run {r}": partial(learning_run, order.seed, r, sizes) for r in range(order.runs)}
    log.complete(tasks, n_jobs=order.n_jobs, what="lemma")
    write_figure(order.out / "lemma.png", _draw(order.seed, sizes))
    found = {
        "sizes": sizes._asdict(),
        "depth": DEPTH,
        "directions": DIRECTIONS.tolist(),
        "pairs": [_described(pair) for pair in (STRAIGHT_PAIR, CROSSED_PAIR)],
        "alike": [alike_pairs(q, order.seed) for q in range(1, MOST_FEATURES + 1)],
        "learners": list(LEARNERS),
        "runs": [log.found[name] for name in tasks],
    }
    write_result(order, "lemma", found, section)


def with_oblique(points: Floats, n_directions: int) -> Floats:
    """Points of two features with w . x as further features, for the first of the `DIRECTIONS` w.

    ``abs_diff`` of such a feature is abs(w . x - w . x') = abs(w . (x - x')), an oblique coordinate of the pair.
    """
    # Written out: a product of matrices may round one and the same point differently from place to place.
    oblique = [points[..., 0] * w[0] + points[..., 1] * w[1] for w in DIRECTIONS[:n_directions]]
    return np.concatenate([points, *(values[..., None] for values in oblique)], axis=-1)


def draw_pairs(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """Pairs of points uniform in the unit square; same iff the two points differ in the same sense in both features."""
    pairs = rng.random((n, 2, 2))
    return pairs, (pairs[:, 0] - pairs[:, 1]).prod(axis=1) > 0.0


def fitted(n_directions: int, pairs: Floats, same: NDArray[np.bool_]) -> SimilarityTree:
    """A tree on f and so many oblique coordinates."""
    return SimilarityTree(max_depth=DEPTH, random_state=0).fit(with_oblique(pairs, n_directions), same)


def learning_run(seed: int, number: int, sizes: Sizes) -> Values:
    """AUC of each learner on its training pairs and on fresh ones."""
    pairs, same = draw_pairs(sizes.pairs, np.random.default_rng([seed, number]))
    # The third number keeps what is fresh apart from what is learned from.
    fresh, fresh_same = draw_pairs(sizes.fresh, np.random.default_rng([seed, number, 1]))
    found = {}
    for name, n_directions in LEARNERS.items():
        tree = fitted(n_directions, pairs, same)
        found[name] = {"training": tree.auc_, "fresh": tree.score(with_oblique(fresh, n_directions), fresh_same)}
    return found


def alike_pairs(n_features: int, seed: int) -> Values:
    """Count unordered pairs that have the same f as a random pair: all of them, and those that further directions leave alike.

    They are the pairs with the same sums and the same absolute differences, that is with any signs of the differences; turning
    all signs round gives the same unordered pair, so that the first sign is kept.
    """
    rng = np.random.default_rng([seed, n_features, 2])  # 0 (none) and 1 are those of the runs
    sums, differences = rng.normal(size=(2, n_features))
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=n_features - 1)])
    pairs = np.stack([sums + signs * differences, sums - signs * differences], axis=1) / 2.0
    directions = rng.normal(size=(n_features - 1, n_features))
    oblique = np.abs((signs * differences) @ directions.T)
    seen = np.hstack([pair_features(pairs), oblique])
    n_f = 2 * n_features
    return {
        "features": n_features,
        "pairs": len(pairs),
        "alike_in_f": _n_like_first(seen[:, :n_f]),
        "added_directions": n_features - 1,
        "alike_with_them": _n_like_first(seen),
    }


def _n_like_first(rows: Floats) -> int:
    """How many rows equal the first one, up to rounding."""
    return int(np.isclose(rows, rows[0], rtol=0.0, atol=1e-9).all(axis=1).sum())


def _described(pair: tuple[tuple[float, float], tuple[float, float]]) -> Values:
    """All that f and the oblique coordinates say of a pair, and a symmetric function that f does not know."""
    points = np.array([pair])
    absolute, sums = np.split(pair_features(points)[0], 2)
    difference = points[0, 0] - points[0, 1]
    return {
        "pair": pair,
        "f": [*sums.tolist(), *absolute.tolist()],  # in the paper's order
        "oblique": np.abs(DIRECTIONS @ difference).tolist(),
        "product": float(difference.prod()),
    }


def _draw(seed: int, sizes: Sizes) -> Any:
    """The two pairs of the counter-example; then what a tree learned of x - x', at x + x' = (1, 1), without and with w."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.5), layout="constrained")
    _draw_example(axes[0])
    pairs, same = draw_pairs(sizes.pairs, np.random.default_rng([seed, 0]))
    differences = (pairs[:, 0] - pairs[:, 1])[: sizes.marks]
    first, second = np.meshgrid(grid(-1.0, 1.0, GRID), grid(-1.0, 1.0, GRID))
    shift = np.stack([first, second], axis=-1).reshape(-1, 2) / 2.0
    shown = np.stack([0.5 + shift, 0.5 - shift], axis=1)
    titles = ("a tree on $f$: the four quarters look alike", "with two oblique coordinates $|w \\cdot (x - x')|$")
    for ax, n_directions, title in zip(axes[1:], (0, 2), titles, strict=True):
        tree = fitted(n_directions, pairs, same)
        ranks = tree.tree_.mean_ranks[tree.apply(with_oblique(shown, n_directions))].reshape(GRID, GRID)
        coloured = draw_map(ax, ranks, low=-1.0, high=1.0, limits=(0.0, 1.0))
        scatter_kinds(ax, differences[:, 0], differences[:, 1], same[: sizes.marks], size=7)
        ax.axhline(0.0, color=INK, lw=0.8)
        ax.axvline(0.0, color=INK, lw=0.8)
        ax.set_title(title, size=10)
        ax.set(xlabel="$x_1 - x_1'$", ylabel="$x_2 - x_2'$", xticks=[-1, 0, 1], yticks=[-1, 0, 1], xlim=(-1, 1), ylim=(-1, 1))
    axes[1].legend(
        *axes[1].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False
    )
    bar = figure.colorbar(coloured, ax=axes[1:].tolist(), shrink=0.85, pad=0.02, ticks=[0, 0.5, 1])
    bar.set_label("share of training pairs that are less similar")
    return figure


def _draw_example(ax: Any) -> None:
    looks = ((STRAIGHT_PAIR, "-", "o", "{(0, 0), (1, 1)}"), (CROSSED_PAIR, "--", "D", "{(0, 1), (1, 0)}"))
    for pair, line, mark, label in looks:
        x, y = zip(*pair, strict=True)
        ax.plot(x, y, ls=line, marker=mark, color=INK, ms=7, lw=1.6, label=label)
    straight, crossed = (_described(pair)["oblique"] for pair in (STRAIGHT_PAIR, CROSSED_PAIR))
    words = {"ha": "center", "va": "center", "size": 9}
    ax.text(0.5, -0.2, "$x + x'$ is (1, 1) and $|x - x'|$ is (1, 1) for both", **words)
    for height, direction, w in ((1.32, "(1, 1)", 0), (1.18, "(1, -1)", 1)):
        ax.text(0.5, height, f"along {direction}: solid {straight[w]:.2f}, dashed {crossed[w]:.2f}", color=FAINT, **words)
    ax.set(aspect="equal", xlim=(-0.37, 1.37), ylim=(-0.32, 1.42), xlabel="$x_1$", ylabel="$x_2$", xticks=[0, 1], yticks=[0, 1])
    ax.set_title("two pairs of points that $f$ cannot tell apart", size=10)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def section(result: Values) -> str:
    """What the lemma says, the counter-example, and what learning makes of it."""
    return f"""## What f cannot see (Lemma 1)

The paper's f maps a pair to its sums and absolute differences, feature by feature (divided by √2). Its Lemma 1 reads:

> Let S : X² → R. Then, S is symmetric iff there exists s : R^q x R₊^q → R such that: ∀ (x, x') ∈ X², S(x, x') = (s∘f)(x, x').

"If" is right: f does not change when x and x' change places, so no function of f does. "Only if" is right for one feature:
the sum and the distance of two numbers tell which two numbers they are. It is wrong for two features and more. f keeps how much
the points differ in each feature, and loses which difference goes with which: whether the point that is larger in the first
feature is the larger or the smaller one in the second. Two pairs show it:

{_example_table(result["pairs"])}

They have the same f, so every s∘f scores them alike. Yet the last column, a symmetric function of the pair, tells them apart:
it is no function of f. So does an *oblique coordinate* abs(w·(x - x')), which is symmetric too.

With q features, 2^(q - 1) unordered pairs share one f (as long as no difference is 0). Oblique coordinates repair it: x + x'
and abs(w·(x - x')) for 2q - 1 directions w in general position determine the unordered pair. The differences in f are q of
them, so q - 1 more are enough. Counted for a random pair and random directions:

{_alike_table(result["alike"])}

{_learning_section(result)}"""


def _example_table(pairs: list[Values]) -> str:
    rows = [
        [
            "{" + ", ".join(f"({x:g}, {y:g})" for x, y in entry["pair"]) + "}",
            "(" + ", ".join(f"{value:.3f}" for value in entry["f"]) + ")",
            *(f"{value:.3f}" for value in entry["oblique"]),
            f"{entry['product']:+g}",
        ]
        for entry in pairs
    ]
    oblique = [f"abs(w·(x - x')), w = {w} / √2" for w in ("(1, 1)", "(1, -1)")]
    return markdown_table(["pair", "f(x, x')", *oblique, "(x₁ - x₁')(x₂ - x₂')"], rows)


def _alike_table(alike: list[Values]) -> str:
    columns = {
        "features q": "features",
        "unordered pairs with one and the same f": "alike_in_f",
        "random directions added": "added_directions",
        "pairs still alike": "alike_with_them",
    }
    return markdown_table(columns, [[entry[name] for name in columns.values()] for entry in alike])


def _learning_section(result: Values) -> str:
    sizes, runs = result["sizes"], result["runs"]
    learned = [
        [name, *(mean_and_spread([found[name][part] for found in runs]) for part in ("training", "fresh"))]
        for name in result["learners"]
    ]
    spread = f"mean ± standard deviation over {len(runs)} runs" if len(runs) > 1 else "one run"
    return f"""### What it costs a learner

Let x and x' be independent and uniform in the unit square, and call a pair *same* iff (x₁ - x₁')(x₂ - x₂') > 0. Now let the
points exchange their second features. Their law does not change, nor does f, but same becomes different. So f has one law for
both kinds of pair, and every similarity that is a function of f has the AUC 1/2. A tree of depth {result["depth"]} learned
from {sizes["pairs"]:,} pairs and tested on {sizes["fresh"]:,} fresh ones ({spread}):

{markdown_table(["tree on", "AUC on training pairs", "AUC on fresh pairs"], learned)}

What the tree on f finds in its training pairs is noise. One direction is enough in principle; with the second, fewer cuts
along coordinates say the same.

![Two pairs with the same f; scores of a tree on f, alike in all four quarters; scores with oblique coordinates](lemma.png)

Left: the two pairs of the counter-example. Middle and right: what a tree learned of x - x', drawn for x + x' = (1, 1), with
some training pairs of any sum.

The oblique coordinates are made of what there is: w·x is added to each point as a feature, and the absolute difference of
that feature is abs(w·x - w·x') = abs(w·(x - x')). Its sum, w·(x + x'), comes along and says nothing that the sums in f do
not say."""
