"""The figures of the paper's appendix: regions in the unit square, a symmetric split, a tree with its scores, ROC knots."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree.datasets import make_square_law, make_tree_law, square_law_posterior
from simtree.experiments._maps import draw_map, grid, scatter_pairs
from simtree.experiments._results import Order, RunLog, Values, markdown_table, mean_and_spread, write_figure, write_result
from simtree.metrics import Roc, roc_curve
from simtree.models._tree import SimilarityTree
from simtree.pairs._sampling import PairSampler
from simtree.plots import BLUE, FAINT, INK, ORANGE, PALETTE, TreeDisplay
from simtree.splitters import CartSplitter, CrossSplitter, CutSplitter

Floats = NDArray[np.float64]

# Classes of regions, by their names in the paper, with the splitter and the coordinates that it may use.
PROPOSALS: dict[str, dict[str, Any]] = {
    "C_sq": {"splitter": CrossSplitter()},
    "C_diag": {"splitter": CutSplitter(), "coordinates": ["abs_diff"]},
    "C_diag and sums": {"splitter": CutSplitter(), "coordinates": ["abs_diff", "sum"]},
}
MATH = {"C_sq": r"$\mathcal{C}_{sq}$", "C_diag": r"$\mathcal{C}_{diag}$", "C_diag and sums": r"$\mathcal{C}_{diag}$ and sums"}
SQUARE_DEPTHS = (1, 2, 3, 5, 8)
DRAWN_DEPTH = 3

# Optimal AUCs for `make_square_law`. Half of all pairs have both samples on one side of 1/2 (eta = 0.68), the others do not
# (eta = 0.32), and p+ = 1/2, so the posterior has TPR 0.68 and FPR 0.32 at its only knot. The distance of a pair of the first
# half is below that of a pair of the second half with probability 11/12, so the best AUC of a distance is 0.32 + 0.36 * 11/12.
POSTERIOR_AUC, DISTANCE_AUC = 0.68, 0.65

# Settings for a distribution of Table 1 with D_gt = 3.
LAW_DEPTH, TREE_DEPTH = 3, 3
KNOT_DEPTHS = tuple(range(1, 9))
KNOT_DEPTHS_DRAWN = (1, 2, 3, 4, 6)
LEAF_DEPTH = 5
GRID = 480
REGION_COLOUR = PALETTE[3]


class Sizes(NamedTuple):
    """Numbers of samples, training pairs, test pairs, and pairs that are plotted."""

    points: int = 2_000
    pairs: int = 10_000
    fresh: int = 100_000
    marks: int = 500


class SquareData(NamedTuple):
    """Samples of `make_square_law`, and training pairs as row numbers."""

    X: Floats
    pairs: NDArray[np.int64]
    same: NDArray[np.bool_]


def run(order: Order, *, sizes: Sizes | None = None) -> None:
    """Do all runs, draw the four figures (of run 0), and write ``figures.json`` and ``figures.md``."""
    sizes = Sizes() if sizes is None else sizes
    log = RunLog(order.out / "figures.runs.jsonl", {"seed": order.seed, "sizes": sizes, "depths": SQUARE_DEPTHS})
    tasks = {f"run {r}": partial(square_run, order.seed, r, sizes) for r in range(order.runs)}
    log.complete(tasks, n_jobs=order.n_jobs, what="figures")
    runs = [log.found[name] for name in tasks]
    data = square_data(order.seed, 0, sizes)
    trees = {name: square_tree(name, DRAWN_DEPTH, data) for name in PROPOSALS}
    split = square_split(data)
    knots, grown, optimal = _knots(order.seed, sizes)
    write_figure(order.out / "figures_square.png", _draw_square(data, trees, runs, sizes))
    write_figure(order.out / "figures_split.png", _draw_split(data, split, sizes))
    write_figure(order.out / "figures_tree.png", _draw_tree(grown))
    write_figure(order.out / "figures_knots.png", _draw_knots(knots, optimal))
    found = {
        "sizes": sizes._asdict(),
        "square": {
            "depths": SQUARE_DEPTHS,
            "drawn_depth": DRAWN_DEPTH,
            "grid": GRID,
            "posterior_auc": POSTERIOR_AUC,
            "distance_auc": DISTANCE_AUC,
            "largest_asymmetry": {name: _asymmetry(tree) for name, tree in trees.items()},
            "rules": {name: tree.export_text(feature_names=["x"], max_depth=1) for name, tree in trees.items()},
            "runs": runs,
        },
        "split": {
            "depth_of_cart": LEAF_DEPTH,
            "tests": len(split.tree_.coordinate),
            "fpr_inside": float(split.roc_.fpr[1]),
            "tpr_inside": float(split.roc_.tpr[1]),
            "share_inside": float((score_map(split, GRID) > 1.0).mean()),
            "share_as_posterior": float(np.mean((score_map(split, GRID) > 1.0) == (_posterior_map(GRID) > 0.5))),
            "largest_asymmetry": _asymmetry(split),
        },
        "tree": {"law_depth": LAW_DEPTH, "depth": TREE_DEPTH, "rules": grown.export_text(), "leaves": way_down(grown)},
        "knots": {
            "optimal": {"auc": optimal.auc(), "fpr": optimal.fpr.tolist(), "tpr": optimal.tpr.tolist()},
            "by_depth": knots,
        },
    }
    write_result(order, "figures", found, section)


def square_data(seed: int, number: int, sizes: Sizes) -> SquareData:
    """Draw the training samples of a run and pairs of them, with the natural share of same pairs (one half)."""
    rng = np.random.default_rng([seed, number])
    X, y = make_square_law(sizes.points, random_state=int(rng.integers(2**31)))
    index = PairSampler(y).sample(sizes.pairs, rng, positive_fraction=None)  # shuffled: the first ones are plotted
    return SquareData(X, np.stack([index.first, index.second], axis=1).astype(np.int64), index.same)


def square_tree(name: str, depth: int, data: SquareData) -> SimilarityTree:
    """Fit a tree whose cells are split by regions of one class."""
    tree = SimilarityTree(max_depth=depth, max_bins=None, random_state=0, **PROPOSALS[name])
    return tree.fit(data.X, data.same, pairs=data.pairs)


def square_split(data: SquareData) -> SimilarityTree:
    """Split the square once by Symmetric LeafRank: a classification tree on f, whose inside leaves form the region."""
    # Smaller leaves would be slivers that distract from the shape of the region.
    leafrank = CartSplitter(max_depth=LEAF_DEPTH, min_samples_leaf=max(1, len(data.same) // 100))
    return SimilarityTree(max_depth=1, splitter=leafrank, max_bins=None).fit(data.X, data.same, pairs=data.pairs)


def square_run(seed: int, number: int, sizes: Sizes) -> Values:
    """Return the test AUC of the posterior, and of a tree of each depth for each class of regions."""
    data = square_data(seed, number, sizes)
    # The third number makes the test pairs independent of the training pairs.
    rng = np.random.default_rng([seed, number, 1])
    X, y = make_square_law(2 * sizes.fresh, random_state=int(rng.integers(2**31)))
    pairs, same = X.reshape(-1, 2, 1), y[::2] == y[1::2]
    found: Values = {"posterior": roc_curve(square_law_posterior(pairs[:, 0, 0], pairs[:, 1, 0]), same).auc()}
    for name in PROPOSALS:
        found[name] = [square_tree(name, depth, data).score(pairs, same) for depth in SQUARE_DEPTHS]
    return found


def score_map(tree: SimilarityTree, n: int) -> Floats:
    """Return the scores of the pairs (x, x') on a grid of the unit square; a row is an x'."""
    points = grid(0.0, 1.0, n)[:, None]
    return tree.pairwise_score(points, points)


def way_down(tree: SimilarityTree) -> list[Values]:
    """Return each terminal cell with the terms subtracted from the root score 2^J on the path to it."""
    cells, max_depth = tree.tree_.cells, tree.max_depth_
    leaves = []
    for leaf in tree.tree_.leaves.tolist():
        subtracted, cell = [], leaf
        while (parent := int(cells.parent[cell])) >= 0:
            if cells.outside[parent] == cell:
                subtracted.append(2 ** (max_depth - int(cells.depth[cell])))
            cell = parent
        leaves.append(
            {
                "cell": f"C_{cells.depth[leaf]},{cells.rank[leaf]}",
                "same": int(cells.n_same[leaf]),
                "different": int(cells.n_different[leaf]),
                "subtracted": subtracted[::-1],
                "score": float(tree.tree_.scores[leaf]),
            }
        )
    return leaves


def _knots(seed: int, sizes: Sizes) -> tuple[list[Values], SimilarityTree, Roc]:
    """Return the ROC curves of trees of increasing depth on the same pairs, the tree to draw, and the optimal curve."""
    law = make_tree_law(LAW_DEPTH, random_state=seed)
    pairs, same = law.sample(sizes.pairs, random_state=np.random.RandomState([seed, 0]))
    fresh, fresh_same = law.sample(sizes.fresh, random_state=np.random.RandomState([seed, 1]))
    trees = {depth: SimilarityTree(max_depth=depth, splitter="cut", max_bins=None).fit(pairs, same) for depth in KNOT_DEPTHS}
    by_depth = [
        {
            "depth": depth,
            "fpr": tree.roc_.fpr.tolist(),
            "tpr": tree.roc_.tpr.tolist(),
            "training_auc": tree.auc_,
            "fresh_auc": tree.score(fresh, fresh_same),
        }
        for depth, tree in trees.items()
    ]
    return by_depth, trees[TREE_DEPTH], law.optimal_roc


def _asymmetry(tree: SimilarityTree) -> float:
    """Return the largest difference of scores between a pair and the swapped pair, on a grid."""
    scores = score_map(tree, GRID)
    return float(np.abs(scores - scores.T).max())


def _posterior_map(n: int) -> Floats:
    points = grid(0.0, 1.0, n)
    return square_law_posterior(points[None, :], points[:, None])


def _draw_square(data: SquareData, trees: dict[str, SimilarityTree], runs: list[Values], sizes: Sizes) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.2), layout="constrained")
    marks, posterior, areas = axes[0]
    x, x2, same = _both_ways(data, sizes.marks)
    scatter_pairs(marks, x, x2, same, size=8)
    marks.set_title(f"{min(sizes.marks, len(data.same)):,} of {len(data.same):,} training pairs", size=10)
    marks.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, handletextpad=0.2)
    draw_map(posterior, _posterior_map(GRID), low=0.0, high=1.0, limits=(0.2, 0.8))
    posterior.set_title("posterior $\\eta(x, x')$", size=10)
    for place in ((0.25, 0.25), (0.75, 0.75), (0.25, 0.75), (0.75, 0.25)):
        posterior.text(*place, f"{square_law_posterior(*place):.2f}", ha="center", va="center", color=INK)
    _draw_areas(areas, runs)
    for ax, (name, tree) in zip(axes[1], trees.items(), strict=True):
        coloured = draw_map(ax, score_map(tree, GRID), low=0.0, high=1.0, limits=(1.0, 2.0**DRAWN_DEPTH))
        ax.set_title(f"tree of depth {DRAWN_DEPTH}, {MATH[name]}", size=10)
    bar = figure.colorbar(coloured, ax=axes[1].tolist(), shrink=0.9, pad=0.02, ticks=range(1, 2**DRAWN_DEPTH + 1))
    bar.set_label("score $s_D(x, x')$")
    for ax in (marks, posterior, *axes[1]):
        ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xlabel="$x$", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        ax.set_ylabel("$x'$", rotation=0)
        ax.plot([0, 1], [0, 1], color=FAINT, lw=0.6, ls=":")
    return figure


def _draw_areas(ax: Any, runs: list[Values]) -> None:
    """Plot the test AUC against depth: the mean over the runs, with bars of one standard deviation."""
    for (name, label), look, colour in zip(MATH.items(), ("o-", "s--", "^-."), (BLUE, ORANGE, INK), strict=True):
        values = np.array([found[name] for found in runs])
        spread = values.std(axis=0, ddof=1) if len(runs) > 1 else None
        ax.errorbar(SQUARE_DEPTHS, values.mean(axis=0), spread, fmt=look, color=colour, ms=4, lw=1.2, label=label)
    for value, words in ((POSTERIOR_AUC, "posterior"), (DISTANCE_AUC, "best distance")):
        ax.axhline(value, color=FAINT, lw=0.8, ls=":")
        ax.text(SQUARE_DEPTHS[-1] + 0.2, value + 0.001, f"{words}: {value:.2f}", ha="right", va="bottom", size=8, color=FAINT)
    ax.set(xlabel="depth $D$", xticks=SQUARE_DEPTHS, box_aspect=1)
    ax.set_ylim(top=POSTERIOR_AUC + 0.01)
    ax.set_title("AUC on test pairs", size=10)
    ax.legend(loc="lower right", frameon=False, fontsize=8)


def _both_ways(data: SquareData, most: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return some pairs, each as (x, x') and as (x', x), because a pair is unordered."""
    values = data.X[data.pairs[:most], 0]
    return np.append(values[:, 0], values[:, 1]), np.append(values[:, 1], values[:, 0]), np.tile(data.same[:most], 2)


def _draw_split(data: SquareData, split: SimilarityTree, sizes: Sizes) -> Any:
    import matplotlib.pyplot as plt

    figure, (plane, square) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained", width_ratios=(2.0, 1.0))
    sums, differences = np.meshgrid(grid(0.0, 2.0, 2 * GRID), grid(0.0, 1.0, GRID))
    possible = differences <= np.minimum(sums, 2.0 - sums)
    pairs = np.stack([sums + differences, sums - differences], axis=-1)[possible][..., None] / 2.0
    inside = np.full(sums.shape, np.nan)
    inside[possible] = split.pair_score(pairs) - 1.0
    _shade(plane, inside, (0.0, 2.0, 0.0, 1.0))
    values = data.X[data.pairs[: sizes.marks], 0]
    scatter_pairs(plane, values.sum(axis=1), np.abs(np.diff(values, axis=1)[:, 0]), data.same[: sizes.marks], size=6)
    # Both samples below one half, or both above: there the posterior is 0.68.
    edge = {"color": INK, "lw": 1.2, "ls": "--"}
    (line,) = plane.plot([0.5, 1, 1.5], [0.5, 0, 0.5], **edge)
    plane.plot([0, 1, 2], [0, 1, 0], color=FAINT, lw=0.8)
    plane.set(xlim=(0, 2), ylim=(0, 1), xlabel="$x + x'$", ylabel="$|x - x'|$", aspect="equal")
    plane.set_title("a region in the plane of $f$", size=10)
    _shade(square, score_map(split, GRID) - 1.0, (0.0, 1.0, 0.0, 1.0))
    x, x2, same = _both_ways(data, sizes.marks)
    scatter_pairs(square, x, x2, same, size=6)
    square.plot([0.5, 0.5], [0, 1], **edge)
    square.plot([0, 1], [0.5, 0.5], **edge)
    square.plot([0, 1], [0, 1], color=FAINT, lw=0.8, ls=":")
    square.set(xlim=(0, 1), ylim=(0, 1), xlabel="$x$", ylabel="$x'$", aspect="equal")
    square.set_title("the same region in the square of pairs", size=10)
    handles, labels = plane.get_legend_handles_labels()
    region = plt.Rectangle((0, 0), 1, 1, fc=REGION_COLOUR, ec="none")
    figure.legend(
        [*handles, region, line],
        [*labels, r"inside, $\mathcal{C}_{1,0}$", "edge of the optimal region"],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return figure


def _shade(ax: Any, inside: Floats, extent: tuple[float, float, float, float]) -> None:
    """Colour the area where ``inside`` is 1; 0 and NaN stay white."""
    from matplotlib.colors import ListedColormap

    look = {"cmap": ListedColormap(["white", REGION_COLOUR]), "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
    ax.imshow(inside, origin="lower", extent=extent, **look)


def _draw_tree(grown: SimilarityTree) -> Any:
    """Draw the tree with the score of a pair so far in each cell, computed as in the paper's caption."""
    display = TreeDisplay.from_estimator(grown, max_depth=TREE_DEPTH)
    for cell, text in display.text_.items():
        if grown.tree_.cells.inside[cell] >= 0:
            text.set_text(f"{text.get_text()}\nscore so far {grown.tree_.scores[cell]:.0f}")
    return display.figure_


def _draw_knots(knots: list[Values], optimal: Roc) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.4), layout="constrained")
    for ax, depth in zip(axes.flat, KNOT_DEPTHS_DRAWN, strict=False):
        entry = knots[KNOT_DEPTHS.index(depth)]
        before = set(_points(knots[KNOT_DEPTHS.index(depth) - 1])) if depth > 1 else {(0.0, 0.0), (1.0, 1.0)}
        points = _points(entry)
        is_old = np.array([point in before for point in points])
        old, new = np.array(points)[is_old], np.array(points)[~is_old]
        ax.plot(optimal.fpr, optimal.tpr, color=ORANGE, ls="--", lw=1.2, label="optimal")
        ax.plot(entry["fpr"], entry["tpr"], color=BLUE, lw=1.2, label="training ROC curve")
        ax.plot(*old.T, "o", color=BLUE, ms=4.5, label="earlier knots")
        ax.plot(*new.T, "o", color=BLUE, mfc="white", ms=4.5, label="new knots")
        ax.plot([0, 1], [0, 1], color=FAINT, ls=":", lw=0.8)
        ax.set_title(f"depth {depth}: {len(entry['fpr'])} knots, AUC {entry['training_auc']:.3f}", size=10)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="false positive rate", ylabel="true positive rate", box_aspect=1)
    axes[0, 0].legend(loc="lower right", frameon=False, fontsize=9)
    depths = [entry["depth"] for entry in knots]
    areas = axes[1, 2]
    areas.plot(depths, [entry["training_auc"] for entry in knots], "o-", color=BLUE, ms=5, label="training pairs")
    areas.plot(depths, [entry["fresh_auc"] for entry in knots], "s-.", color=INK, ms=5, mfc="white", label="test pairs")
    areas.axhline(optimal.auc(), color=ORANGE, ls="--", lw=1.2, label="optimal")
    areas.set(xlabel="depth $D$", xticks=depths, box_aspect=1)
    areas.legend(loc="lower right", frameon=False, fontsize=9)
    areas.set_title("AUC", size=10)
    return figure


def _points(entry: Values) -> list[tuple[float, float]]:
    return list(zip(entry["fpr"], entry["tpr"], strict=True))


def section(result: Values) -> str:
    """Return the figures with their numbers, next to the captions of the paper."""
    sizes = result["sizes"]
    return f"""## The figures of the appendix

This package was written from the text of the paper, which has the captions of the figures but not the images, and does not
state the numbers of pairs or the depths. So our figures are compared with the captions. They show run 0 with random seed
{result["seed"]}: {sizes["pairs"]:,} training pairs, and {sizes["fresh"]:,} test pairs for each test AUC.

{_square_section(result["square"], sizes)}

{_split_section(result["split"])}

{_tree_section(result["tree"], sizes)}

{_knots_section(result["knots"])}"""


def _square_section(square: Values, sizes: Values) -> str:
    runs, depths, grid_size = square["runs"], square["depths"], square["grid"]
    names = list(square["largest_asymmetry"])
    by_depth = [[name, *(mean_and_spread([found[name][k] for found in runs]) for k in range(len(depths)))] for name in names]
    table = markdown_table(["regions", *(f"depth {depth}" for depth in depths)], by_depth)
    spread = f"mean ± standard deviation over {len(runs)} runs" if len(runs) > 1 else "one run"
    posterior = mean_and_spread([found["posterior"] for found in runs])
    asymmetry = max(square["largest_asymmetry"].values())
    return f"""### Regions in the unit square

*"Representation of TreeRank score function with different proposal regions"*, for X uniform on [0, 1], and P(Y = 2 | X = x) =
0.2 for x below one half and 0.8 otherwise. The paper shows training pairs, C_sq and C_diag; we add the posterior and the AUC.

![Training pairs, posterior, AUC by depth, and score maps with C_sq, C_diag, and C_diag with sums](figures_square.png)

AUC on test pairs by depth of the tree, trained on {sizes["points"]:,} samples ({spread}):

{table}

The posterior, which is optimal, has {posterior} on the same pairs. Its exact AUC is {square["posterior_auc"]:.2f}, and the
best AUC of a function of the distance alone is {square["distance_auc"]:.2f}.

A single region of C_sq, both samples on the same side of one half, is optimal for this distribution: C_sq finds it at depth 1,
and deeper splits have almost nothing left to gain. C_diag depends on the distance alone. With sums it can also use the position
of a pair along the diagonal; but the edges of the optimal region are oblique in f, so that it takes many cuts to approximate
them. Every map is symmetric: on a grid of {grid_size} by {grid_size} pairs, s(x, x') and s(x', x) differ by at most
{asymmetry:g}.

Differences from the paper:

- The paper's C_diag has f = (|x - x'|, x + x') but lets i run from 1 to D only, that is, over the differences. We show it as
  printed, and next to it the version with sums, which is the splitter of Table 1.
- The two signs of C_sq give the same set; we use the region and its complement.
- A pair is unordered: in figures of the square, each pair is plotted as (x, x') and as (x', x).
- The numbers of samples and pairs, and the depth {square["drawn_depth"]} of the trees in the figure, are our choice."""


def _split_section(split: Values) -> str:
    tpr, fpr, area = (f"{split[name]:.3f}" for name in ("tpr_inside", "fpr_inside", "share_inside"))
    return f"""### A symmetric split

*"Symmetric split produced by the Symmetric LeafRank procedure."*

![The inside of a split in the plane of f, and in the square of pairs, symmetric about the diagonal](figures_split.png)

Here, LeafRank is a classification tree of depth {split["depth_of_cart"]} on f, as in the paper's experiment on MNIST, with at
least one percent of the pairs in each leaf. Its {split["tests"]} tests are vertical and horizontal lines in the plane of f, and
lines at 45° in the square. The inside holds {tpr} of the same and {fpr} of the different training pairs, and covers {area} of
the square; {split["share_as_posterior"]:.3f} of the square is on the same side as with the posterior. The largest difference
between s(x, x') and s(x', x) is {split["largest_asymmetry"]:g}. The paper does not say which data its split is based on; ours
is the first split for the distribution above."""


def _tree_section(tree: Values, sizes: Values) -> str:
    depth = tree["depth"]
    leaves = [
        [
            leaf["cell"],
            leaf["same"],
            leaf["different"],
            " - ".join(map(str, [2**depth, *leaf["subtracted"]])),
            f"{leaf['score']:g}",
        ]
        for leaf in tree["leaves"]
    ]
    return f"""### A tree of depth {depth} with its scores

*"A piecewise constant similarity function described by an oriented binary subtree"*: the score starts with 2^J at the root,
does not change when a pair goes left (inside), and decreases by 2^(J - (j + 1)) when it goes right from a cell of depth j. The
caption does not name the data; ours are {sizes["pairs"]:,} pairs of a distribution of Table 1 (D_gt = {tree["law_depth"]}), and
the splitter is one cut on f.

![Tree of depth {depth}: cells with their counts, tests, and scores](figures_tree.png)

{markdown_table(["cell", "same", "different", "computation", "score"], leaves)}"""


def _knots_section(knots: Values) -> str:
    by_depth = [
        [entry["depth"], len(entry["fpr"]), f"{entry['training_auc']:.4f}", f"{entry['fresh_auc']:.4f}"]
        for entry in knots["by_depth"]
    ]
    return f"""### Knots of the ROC curve by depth

The paper does not show this but states it: the curve is *"a piecewise linear approximation of ROC\\*"*, which each level
refines. The data are those of the tree above. The knots at one depth are among those at the next: a split adds a knot between
two others and moves none.

![ROC curves of trees of increasing depth on training pairs with their knots, and AUC against depth](figures_knots.png)

{markdown_table(["depth", "knots", "AUC on training pairs", "AUC on test pairs"], by_depth)}

The optimal AUC for this distribution is {knots["optimal"]["auc"]:.4f}. A cell is not split if no cut increases the AUC, so deep
trees may have fewer knots than 2^D + 1. A poor cut is never undone, so the curve need not be concave."""
