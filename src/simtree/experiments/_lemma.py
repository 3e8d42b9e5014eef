"""A counter-example to Lemma 1 of the paper for two or more features, and how oblique coordinates fix it."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree.experiments._maps import draw_map, grid, scatter_pairs
from simtree.experiments._results import Order, RunLog, Values, markdown_table, mean_and_spread, write_figure, write_result
from simtree.models._tree import SimilarityTree
from simtree.pairs._pair_features import pair_features
from simtree.plots import FAINT, INK

Floats = NDArray[np.float64]

STRAIGHT_PAIR = ((0.0, 0.0), (1.0, 1.0))
CROSSED_PAIR = ((0.0, 1.0), (1.0, 0.0))
# The unit directions w of |w . (x - x')|.
DIRECTIONS = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2.0)
# Number of directions that each tree uses.
LEARNERS = {"f alone": 0, "f and one oblique coordinate": 1, "f and two oblique coordinates": 2}
DEPTH = 8
MAX_FEATURES = 6
GRID = 300


class Sizes(NamedTuple):
    """Numbers of training pairs, test pairs, and pairs that are plotted."""

    pairs: int = 20_000
    fresh: int = 100_000
    marks: int = 400


def run(order: Order, *, sizes: Sizes | None = None) -> None:
    """Fit trees with and without oblique coordinates, draw the counter-example and run 0, and write ``lemma.*``."""
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
        "alike": [alike_pairs(q, order.seed) for q in range(1, MAX_FEATURES + 1)],
        "learners": list(LEARNERS),
        "runs": [log.found[name] for name in tasks],
    }
    write_result(order, "lemma", found, section)


def with_oblique(samples: Floats, n_directions: int) -> Floats:
    """Append w . x to samples of two features, for the first ``n_directions`` of the `DIRECTIONS` w.

    ``abs_diff`` of such a feature is abs(w . x - w . x') = abs(w . (x - x')), an oblique coordinate of the pair.
    """
    # Written out because a matrix product may round the same sample differently in different rows.
    oblique = [samples[..., 0] * w[0] + samples[..., 1] * w[1] for w in DIRECTIONS[:n_directions]]
    return np.concatenate([samples, *(values[..., None] for values in oblique)], axis=-1)


def draw_pairs(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """Draw pairs of uniform samples in the unit square; same iff the signs of the two feature differences agree."""
    pairs = rng.random((n, 2, 2))
    return pairs, (pairs[:, 0] - pairs[:, 1]).prod(axis=1) > 0.0


def fitted(n_directions: int, pairs: Floats, same: NDArray[np.bool_]) -> SimilarityTree:
    """Fit a tree on f and ``n_directions`` oblique coordinates."""
    return SimilarityTree(max_depth=DEPTH, random_state=0).fit(with_oblique(pairs, n_directions), same)


def learning_run(seed: int, number: int, sizes: Sizes) -> Values:
    """Return the AUC of each tree on training and on test pairs."""
    pairs, same = draw_pairs(sizes.pairs, np.random.default_rng([seed, number]))
    # The third number makes the test pairs independent of the training pairs.
    fresh, fresh_same = draw_pairs(sizes.fresh, np.random.default_rng([seed, number, 1]))
    found = {}
    for name, n_directions in LEARNERS.items():
        tree = fitted(n_directions, pairs, same)
        found[name] = {"training": tree.auc_, "fresh": tree.score(with_oblique(fresh, n_directions), fresh_same)}
    return found


def alike_pairs(n_features: int, seed: int) -> Values:
    """Count the unordered pairs with the same f as a random pair, and those that random directions do not distinguish from it.

    They are the pairs with the same sums and the same absolute differences, that is, with any signs of the differences.
    Flipping all signs gives the same unordered pair, so the first sign is fixed.
    """
    rng = np.random.default_rng([seed, n_features, 2])  # the runs use no third number or 1
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
    """Return the number of rows that equal the first one, up to rounding."""
    return int(np.isclose(rows, rows[0], rtol=0.0, atol=1e-9).all(axis=1).sum())


def _described(pair: tuple[tuple[float, float], tuple[float, float]]) -> Values:
    """Return f and the oblique coordinates of a pair, and a symmetric function that is not a function of f."""
    samples = np.array([pair])
    absolute, sums = np.split(pair_features(samples)[0], 2)
    difference = samples[0, 0] - samples[0, 1]
    return {
        "pair": pair,
        "f": [*sums.tolist(), *absolute.tolist()],  # in the paper's order
        "oblique": np.abs(DIRECTIONS @ difference).tolist(),
        "product": float(difference.prod()),
    }


def _draw(seed: int, sizes: Sizes) -> Any:
    """Draw the counter-example, and the scores of trees as functions of x - x' at x + x' = (1, 1), without and with w."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.5), layout="constrained")
    _draw_example(axes[0])
    pairs, same = draw_pairs(sizes.pairs, np.random.default_rng([seed, 0]))
    differences = (pairs[:, 0] - pairs[:, 1])[: sizes.marks]
    first, second = np.meshgrid(grid(-1.0, 1.0, GRID), grid(-1.0, 1.0, GRID))
    shift = np.stack([first, second], axis=-1).reshape(-1, 2) / 2.0
    shown = np.stack([0.5 + shift, 0.5 - shift], axis=1)
    titles = ("a tree on $f$: the same in all four quadrants", "with two oblique coordinates $|w \\cdot (x - x')|$")
    for ax, n_directions, title in zip(axes[1:], (0, 2), titles, strict=True):
        tree = fitted(n_directions, pairs, same)
        ranks = tree.tree_.mean_ranks[tree.apply(with_oblique(shown, n_directions))].reshape(GRID, GRID)
        coloured = draw_map(ax, ranks, low=-1.0, high=1.0, limits=(0.0, 1.0))
        scatter_pairs(ax, differences[:, 0], differences[:, 1], same[: sizes.marks], size=7)
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
    ax.set_title("two pairs with the same $f$", size=10)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def section(result: Values) -> str:
    """Return the lemma, the counter-example, and its consequences for learning."""
    return f"""## A counter-example to Lemma 1

The paper's f maps a pair to its sums and absolute differences, feature by feature (divided by √2). Lemma 1 reads:

> Let S : X² → R. Then, S is symmetric iff there exists s : R^q x R₊^q → R such that: ∀ (x, x') ∈ X², S(x, x') = (s∘f)(x, x').

"If" is correct: f does not change when x and x' are swapped, so no function of f does. "Only if" is correct for one feature,
because the sum and the distance of two numbers determine the two numbers. It is false for two or more features: f keeps the
absolute difference in each feature, but not how the signs of the differences combine, that is, whether the sample with the
larger first feature has the larger or the smaller second feature. Two pairs show this:

{_example_table(result["pairs"])}

They have the same f, so every s∘f gives them the same score. But the last column, a symmetric function of the pair, differs, so
it is not a function of f. An *oblique coordinate* abs(w·(x - x')), which is also symmetric, differs as well.

With q features, 2^(q - 1) unordered pairs have the same f (if no difference is 0). Oblique coordinates fix this: x + x' and
abs(w·(x - x')) for 2q - 1 directions w in general position determine the unordered pair. The absolute differences in f are q of
these, so q - 1 more suffice. Counts for a random pair and random directions:

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
        "unordered pairs with the same f": "alike_in_f",
        "additional random directions": "added_directions",
        "pairs not distinguished": "alike_with_them",
    }
    return markdown_table(columns, [[entry[name] for name in columns.values()] for entry in alike])


def _learning_section(result: Values) -> str:
    sizes, runs = result["sizes"], result["runs"]
    learned = [
        [name, *(mean_and_spread([found[name][part] for found in runs]) for part in ("training", "fresh"))]
        for name in result["learners"]
    ]
    spread = f"mean ± standard deviation over {len(runs)} runs" if len(runs) > 1 else "one run"
    return f"""### Consequences for learning

Let x and x' be independent and uniform in the unit square, and call a pair *same* iff (x₁ - x₁')(x₂ - x₂') > 0. Now swap the
second features of x and x'. This changes neither their joint distribution nor f, but turns same pairs into different pairs and
vice versa. So f has the same distribution for same and for different pairs, and every similarity that is a function of f has an
AUC of 1/2. A tree of depth {result["depth"]}, fitted to {sizes["pairs"]:,} pairs and tested on {sizes["fresh"]:,} others
({spread}):

{markdown_table(["tree on", "AUC on training pairs", "AUC on test pairs"], learned)}

The tree on f fits the noise in its training pairs. One direction is sufficient in principle; with the second one, fewer cuts
are needed for the same region.

![Two pairs with the same f; scores of a tree on f, the same in all four quadrants; scores with oblique coordinates](lemma.png)

Left: the two pairs of the counter-example. Middle and right: the scores of a tree as a function of x - x', for
x + x' = (1, 1), with some training pairs (whatever their sum).

The oblique coordinates need no new kind of coordinate: w·x is added to each sample as a feature, and the absolute difference of
this feature is abs(w·x - w·x') = abs(w·(x - x')). The sum of this feature, w·(x + x'), is a function of the sums in f and adds
no information."""
