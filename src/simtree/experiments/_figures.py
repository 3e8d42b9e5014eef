"""The figures of the paper's appendix: regions in the unit square, a symmetric split, a tree with its scores, growing knots."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree.datasets import make_square_law, make_tree_law, square_law_posterior
from simtree.experiments._maps import draw_map, grid, scatter_kinds
from simtree.experiments._results import Order, RunLog, Values, markdown_table, mean_and_spread, write_figure, write_result
from simtree.metrics import Roc, roc_curve
from simtree.models._tree import SimilarityTree
from simtree.pairs._sampling import PairSampler
from simtree.plots import BLUE, FAINT, INK, ORANGE, PALETTE, TreeDisplay
from simtree.splitters import CartSplitter, CrossSplitter, CutSplitter

Floats = NDArray[np.float64]

# What is allowed as a region, by its name in the paper; coordinates are those that the splitter may use.
PROPOSALS: dict[str, dict[str, Any]] = {
    "C_sq": {"splitter": CrossSplitter()},
    "C_diag": {"splitter": CutSplitter(), "coordinates": ["abs_diff"]},
    "C_diag and sums": {"splitter": CutSplitter(), "coordinates": ["abs_diff", "sum"]},
}
MATH = {"C_sq": r"$\mathcal{C}_{sq}$", "C_diag": r"$\mathcal{C}_{diag}$", "C_diag and sums": r"$\mathcal{C}_{diag}$ and sums"}
SQUARE_DEPTHS = (1, 2, 3, 5, 8)
DRAWN_DEPTH = 3

# Of the square law. Half of all pairs have both points on one side of 1/2 (eta = 0.68), the others do not (eta = 0.32), and
# p+ = 1/2: so the posterior has TPR 0.68 and FPR 0.32 at its only knot. Among pairs of the first kind the distance is below
# that of a pair of the second kind with probability 11/12, and the best that a distance can do is 0.32 + 0.36 * 11/12.
POSTERIOR_AUC, DISTANCE_AUC = 0.68, 0.65

# Of the law of Table 1 with D_gt = 3.
LAW_DEPTH, TREE_DEPTH = 3, 3
KNOT_DEPTHS = tuple(range(1, 9))
KNOT_DEPTHS_DRAWN = (1, 2, 3, 4, 6)
LEAF_DEPTH = 5
GRID = 480
REGION_COLOUR = PALETTE[3]


class Sizes(NamedTuple):
    """How many points, training pairs (of them, or drawn from a law), fresh pairs, and pairs that are drawn as marks."""

    points: int = 2_000
    pairs: int = 10_000
    fresh: int = 100_000
    marks: int = 500


class SquareData(NamedTuple):
    """Points of the square law, and training pairs of them as row numbers."""

    X: Floats
    pairs: NDArray[np.int64]
    same: NDArray[np.bool_]


def run(order: Order, *, sizes: Sizes | None = None) -> None:
    """Draw the four figures and write ``figures.json`` and ``figures.md``; the pictures are those of run 0."""
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
    """Training points of a run of the square law and pairs of them, in the natural mix of the two kinds (one half same)."""
    rng = np.random.default_rng([seed, number])
    X, y = make_square_law(sizes.points, random_state=int(rng.integers(2**31)))
    index = PairSampler(y).sample(sizes.pairs, rng, positive_fraction=None)
    order = rng.permutation(len(index))  # so that the first ones, which are drawn as marks, are any
    return SquareData(X, np.stack([index.first, index.second], axis=1)[order].astype(np.int64), index.same[order])


def square_tree(name: str, depth: int, data: SquareData) -> SimilarityTree:
    """A tree whose cells are split by regions of that name."""
    tree = SimilarityTree(max_depth=depth, max_bins=None, random_state=0, **PROPOSALS[name])
    return tree.fit(data.X, data.same, pairs=data.pairs)


def square_split(data: SquareData) -> SimilarityTree:
    """The whole square split once by Symmetric LeafRank: a classification tree on f, its leaves united."""
    # Leaves of at least a hundredth of the pairs: smaller ones are slivers, which tell nothing and disturb the eye.
    leafrank = CartSplitter(max_depth=LEAF_DEPTH, min_samples_leaf=max(1, len(data.same) // 100))
    return SimilarityTree(max_depth=1, splitter=leafrank, max_bins=None).fit(data.X, data.same, pairs=data.pairs)


def square_run(seed: int, number: int, sizes: Sizes) -> Values:
    """AUC on fresh pairs of the posterior, and of a tree of each depth for each kind of region."""
    data = square_data(seed, number, sizes)
    # The third number keeps what is fresh apart from what is learned from.
    rng = np.random.default_rng([seed, number, 1])
    X, y = make_square_law(2 * sizes.fresh, random_state=int(rng.integers(2**31)))
    pairs, same = X.reshape(-1, 2, 1), y[::2] == y[1::2]
    found: Values = {"posterior": roc_curve(square_law_posterior(pairs[:, 0, 0], pairs[:, 1, 0]), same).auc()}
    for name in PROPOSALS:
        found[name] = [square_tree(name, depth, data).score(pairs, same) for depth in SQUARE_DEPTHS]
    return found


def score_map(tree: SimilarityTree, n: int) -> Floats:
    """Scores of the pairs (x, x') of a grid of the unit square; a row is an x'."""
    points = grid(0.0, 1.0, n)[:, None]
    return tree.pairwise_score(points, points)


def way_down(tree: SimilarityTree) -> list[Values]:
    """Each terminal cell, and what is subtracted from the score 2^J of the root on the way to it."""
    cells, whole = tree.tree_.cells, tree.max_depth_
    leaves = []
    for leaf in tree.tree_.leaves.tolist():
        subtracted, cell = [], leaf
        while (parent := int(cells.parent[cell])) >= 0:
            if cells.outside[parent] == cell:
                subtracted.append(2 ** (whole - int(cells.depth[cell])))
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
    """Curves of trees of growing depth on the same pairs of a tree law; the tree that is drawn; and the best curve."""
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
    """The largest difference between the score of a pair and that of the pair the other way round, on a grid."""
    scores = score_map(tree, GRID)
    return float(np.abs(scores - scores.T).max())


def _posterior_map(n: int) -> Floats:
    points = grid(0.0, 1.0, n)
    return square_law_posterior(points[None, :], points[:, None])


def _draw_square(data: SquareData, trees: dict[str, SimilarityTree], runs: list[Values], sizes: Sizes) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.2), layout="constrained")
    marks, truth, areas = axes[0]
    x, x2, same = _both_ways(data, sizes.marks)
    scatter_kinds(marks, x, x2, same, size=8)
    marks.set_title(f"{min(sizes.marks, len(data.same)):,} of {len(data.same):,} training pairs", size=10)
    marks.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, handletextpad=0.2)
    draw_map(truth, _posterior_map(GRID), low=0.0, high=1.0, limits=(0.2, 0.8))
    truth.set_title("truth: posterior $\\eta(x, x')$", size=10)
    for place in ((0.25, 0.25), (0.75, 0.75), (0.25, 0.75), (0.75, 0.25)):
        truth.text(*place, f"{square_law_posterior(*place):.2f}", ha="center", va="center", color=INK)
    _draw_areas(areas, runs)
    for ax, (name, tree) in zip(axes[1], trees.items(), strict=True):
        coloured = draw_map(ax, score_map(tree, GRID), low=0.0, high=1.0, limits=(1.0, 2.0**DRAWN_DEPTH))
        ax.set_title(f"tree of depth {DRAWN_DEPTH}, {MATH[name]}", size=10)
    bar = figure.colorbar(coloured, ax=axes[1].tolist(), shrink=0.9, pad=0.02, ticks=range(1, 2**DRAWN_DEPTH + 1))
    bar.set_label("score $s_D(x, x')$")
    for ax in (marks, truth, *axes[1]):
        ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xlabel="$x$", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        ax.set_ylabel("$x'$", rotation=0)
        ax.plot([0, 1], [0, 1], color=FAINT, lw=0.6, ls=":")
    return figure


def _draw_areas(ax: Any, runs: list[Values]) -> None:
    """AUC on fresh pairs against depth: mean over the runs, and bars of one standard deviation."""
    for (name, label), look, colour in zip(MATH.items(), ("o-", "s--", "^-."), (BLUE, ORANGE, INK), strict=True):
        values = np.array([found[name] for found in runs])
        spread = values.std(axis=0, ddof=1) if len(runs) > 1 else None
        ax.errorbar(SQUARE_DEPTHS, values.mean(axis=0), spread, fmt=look, color=colour, ms=4, lw=1.2, label=label)
    for value, words in ((POSTERIOR_AUC, "posterior"), (DISTANCE_AUC, "best distance")):
        ax.axhline(value, color=FAINT, lw=0.8, ls=":")
        ax.text(SQUARE_DEPTHS[-1] + 0.2, value + 0.001, f"{words}: {value:.2f}", ha="right", va="bottom", size=8, color=FAINT)
    ax.set(xlabel="depth $D$", xticks=SQUARE_DEPTHS, box_aspect=1)
    ax.set_ylim(top=POSTERIOR_AUC + 0.01)
    ax.set_title("AUC on fresh pairs", size=10)
    ax.legend(loc="lower right", frameon=False, fontsize=8)


def _both_ways(data: SquareData, most: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Some pairs, each as (x, x') and as (x', x): a pair has no order."""
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
    scatter_kinds(plane, values.sum(axis=1), np.abs(np.diff(values, axis=1)[:, 0]), data.same[: sizes.marks], size=6)
    # Both points below one half, or both above: there the posterior is 0.68.
    edge = {"color": INK, "lw": 1.2, "ls": "--"}
    (line,) = plane.plot([0.5, 1, 1.5], [0.5, 0, 0.5], **edge)
    plane.plot([0, 1, 2], [0, 1, 0], color=FAINT, lw=0.8)
    plane.set(xlim=(0, 2), ylim=(0, 1), xlabel="$x + x'$", ylabel="$|x - x'|$", aspect="equal")
    plane.set_title("where LeafRank works: the plane of $f$", size=10)
    _shade(square, score_map(split, GRID) - 1.0, (0.0, 1.0, 0.0, 1.0))
    x, x2, same = _both_ways(data, sizes.marks)
    scatter_kinds(square, x, x2, same, size=6)
    square.plot([0.5, 0.5], [0, 1], **edge)
    square.plot([0, 1], [0.5, 0.5], **edge)
    square.plot([0, 1], [0, 1], color=FAINT, lw=0.8, ls=":")
    square.set(xlim=(0, 1), ylim=(0, 1), xlabel="$x$", ylabel="$x'$", aspect="equal")
    square.set_title("the same region in the square of pairs", size=10)
    handles, labels = plane.get_legend_handles_labels()
    region = plt.Rectangle((0, 0), 1, 1, fc=REGION_COLOUR, ec="none")
    figure.legend(
        [*handles, region, line],
        [*labels, r"inside, $\mathcal{C}_{1,0}$", "edge of the best region"],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return figure


def _shade(ax: Any, inside: Floats, extent: tuple[float, float, float, float]) -> None:
    """Colour where ``inside`` is 1; 0 and NaN stay white."""
    from matplotlib.colors import ListedColormap

    look = {"cmap": ListedColormap(["white", REGION_COLOUR]), "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
    ax.imshow(inside, origin="lower", extent=extent, **look)


def _draw_tree(grown: SimilarityTree) -> Any:
    """The tree with the score that a pair has kept so far in each cell, as the paper's caption computes it."""
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
        ax.plot(optimal.fpr, optimal.tpr, color=ORANGE, ls="--", lw=1.2, label="best possible")
        ax.plot(entry["fpr"], entry["tpr"], color=BLUE, lw=1.2, label="training ROC curve")
        ax.plot(*old.T, "o", color=BLUE, ms=4.5, label="knots there before")
        ax.plot(*new.T, "o", color=BLUE, mfc="white", ms=4.5, label="new knots")
        ax.plot([0, 1], [0, 1], color=FAINT, ls=":", lw=0.8)
        ax.set_title(f"depth {depth}: {len(entry['fpr'])} knots, AUC {entry['training_auc']:.3f}", size=10)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="false positive rate", ylabel="true positive rate", box_aspect=1)
    axes[0, 0].legend(loc="lower right", frameon=False, fontsize=9)
    depths = [entry["depth"] for entry in knots]
    areas = axes[1, 2]
    areas.plot(depths, [entry["training_auc"] for entry in knots], "o-", color=BLUE, ms=5, label="training pairs")
    areas.plot(depths, [entry["fresh_auc"] for entry in knots], "s-.", color=INK, ms=5, mfc="white", label="fresh pairs")
    areas.axhline(optimal.auc(), color=ORANGE, ls="--", lw=1.2, label="best possible")
    areas.set(xlabel="depth $D$", xticks=depths, box_aspect=1)
    areas.legend(loc="lower right", frameon=False, fontsize=9)
    areas.set_title("AUC", size=10)
    return figure


def _points(entry: Values) -> list[tuple[float, float]]:
    return list(zip(entry["fpr"], entry["tpr"], strict=True))


def section(result: Values) -> str:
    """The figures with their numbers, beside what the paper says of them."""
    sizes = result["sizes"]
    return f"""## The figures of the appendix

The paper's text, which this package was written from, has the captions of the figures but not the pictures themselves, and
says neither how many pairs nor which depths they were made with. So ours are set beside its words. They are those of run 0
with seed {result["seed"]}: {sizes["pairs"]:,} training pairs, and {sizes["fresh"]:,} fresh pairs for each AUC on fresh pairs.

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

*"Representation of TreeRank score function with different proposal regions"*, for X uniform on [0, 1] and P(Y = 2 | X = x) =
0.2 below one half and 0.8 from there on. The paper shows training pairs, C_sq and C_diag; we add the truth and the AUC.

![Training pairs, posterior, AUC by depth, and score maps with C_sq, C_diag, and C_diag with sums](figures_square.png)

AUC on fresh pairs, by depth of the tree, from {sizes["points"]:,} points ({spread}):

{table}

The posterior, than which nothing is better, has {posterior} on the same pairs. Its exact AUC is
{square["posterior_auc"]:.2f}, and the best that a function of the distance alone can have is {square["distance_auc"]:.2f}.

One region of C_sq, both points on the same side of one half, is the whole truth of this law: C_sq is there at depth 1, and
deeper splits have next to nothing left to find. C_diag sees the distance alone. With sums it can also tell where along the
diagonal a pair lies; but the edges of the truth are oblique in f, so that it needs many cuts to come near them. Every map is
symmetric: on a grid of {grid_size} by {grid_size} pairs, s(x, x') and s(x', x) differ by at most {asymmetry:g}.

Where ours differs:

- The paper's C_diag has f = (|x - x'|, x + x') but lets i run from 1 to D only, that is over the differences. We draw it as
  printed, and beside it the version with sums, which is the splitter of Table 1.
- The two signs of C_sq give one and the same set; we take the region and its complement.
- A pair has no order: each one is marked as (x, x') and as (x', x) in pictures of the square.
- Numbers of points and pairs, and depth {square["drawn_depth"]} of the trees in the picture, are our choice."""


def _split_section(split: Values) -> str:
    tpr, fpr, area = (f"{split[name]:.3f}" for name in ("tpr_inside", "fpr_inside", "share_inside"))
    return f"""### A symmetric split

*"Symmetric split produced by the Symmetric LeafRank procedure."*

![The inside of a split in the plane of f, and in the square of pairs, symmetric about the diagonal](figures_split.png)

LeafRank is here a classification tree of depth {split["depth_of_cart"]} on f, as in the paper's experiment on MNIST, with at
least a hundredth of the pairs in each leaf. Its {split["tests"]} tests are upright and level lines in the plane of f, and lines
at 45° in the square. The inside holds {tpr} of the same and {fpr} of the different training pairs, and covers {area} of
the square; {split["share_as_posterior"]:.3f} of the square is on the side where the posterior has it. The largest difference
between s(x, x') and s(x', x) is {split["largest_asymmetry"]:g}. The paper does not say what its split is a split of; ours is
the first one of the law above."""


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
stays when a pair goes left (inside), and loses 2^(J - (j + 1)) when it goes right from a cell of depth j. The caption names no
data; ours are {sizes["pairs"]:,} pairs of a law of Table 1 (D_gt = {tree["law_depth"]}), and the splitter is one cut on f.

![Tree of depth {depth}: cells with their counts, tests, and scores](figures_tree.png)

{markdown_table(["cell", "same", "different", "on the way down", "score"], leaves)}"""


def _knots_section(knots: Values) -> str:
    by_depth = [
        [entry["depth"], len(entry["fpr"]), f"{entry['training_auc']:.4f}", f"{entry['fresh_auc']:.4f}"]
        for entry in knots["by_depth"]
    ]
    return f"""### Knots that grow with depth

The paper has no picture of this but says it: the curve is *"a piecewise linear approximation of ROC\\*"*, and each level
refines it. The data are those of the tree above. The knots of a depth are among those of the next: a split puts a knot between
two others and moves none.

![ROC curves of trees of growing depth on training pairs with their knots, and AUC against depth](figures_knots.png)

{markdown_table(["depth", "knots", "AUC on training pairs", "AUC on fresh pairs"], by_depth)}

No similarity can have more than {knots["optimal"]["auc"]:.4f} for this law. A cell that no cut improves is not split, so that
deep trees may have fewer knots than 2^D + 1. A cut that lies badly stays, which may leave a dent in the curve."""
