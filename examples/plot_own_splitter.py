"""
Your own splitter
=================

A splitter (LeafRank in the paper) is given the pairs of one cell and returns the region of the more similar ones. A
class with one method is enough; the tree does the rest.
"""

# %%
# This splitter weights each coordinate by how far apart the means of same and different pairs are, in units of its
# variance, and cuts the weighted sum where TPR - FPR is highest. It returns ``None`` if there is nothing to gain.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from simtree import CutSplitter, SimilarityTree
from simtree.metrics import roc_curve, youden_threshold
from simtree.pairs import pair_features
from simtree.splitters import Cell, Split, Splitter
from simtree.trees import LinearRegion


class MeansSplitter(Splitter):
    """Cut a weighted sum of coordinates; the weights come from the means of the two kinds of pairs."""

    binned = False  # it looks at the values of coordinates, not at their bins

    def split(self, cell: Cell) -> Split | None:
        """Return the side of the plane on which the same pairs are."""
        values, same = cell.pair_map.values(cell.sample_pairs), cell.same
        gap = values[same].mean(axis=0) - values[~same].mean(axis=0)
        weights = np.divide(gap, values.var(axis=0), out=np.zeros_like(gap), where=values.var(axis=0) > 0)
        if not weights.any():
            return None
        threshold = youden_threshold(roc_curve(values @ weights, same))
        shares = np.abs(weights * values.std(axis=0))  # how much each coordinate matters, for feature_importances_
        return cell.split_by(LinearRegion(weights * cell.pair_map.scales, -threshold, shares / shares.sum()))


# %%
# It is used like any other. Two features of the irises, so that the result can be drawn; half of the flowers for
# training.
X, y = load_iris(return_X_y=True)
X = X[:, 2:] + np.random.default_rng(0).uniform(-0.05, 0.05, size=(150, 2))  # undo the rounding, for the eye
train, test = np.arange(150) % 2 == 0, np.arange(150) % 2 == 1
trees = {}
for splitter in (CutSplitter(), MeansSplitter()):
    for depth in (1, 4):
        tree = SimilarityTree(max_depth=depth, splitter=splitter, coordinates=["abs_diff"], n_pairs=None).fit(
            X[train], y[train]
        )
        trees[type(splitter).__name__, depth] = tree
        print(f"{type(splitter).__name__:14} depth {depth}: AUC on test pairs {tree.score(X[test], y[test]):.3f}")

# %%
# The first split of each tree: a pair is a point of the plane of absolute differences, and the shaded region is
# *inside*.
pairs = X[test][np.column_stack(np.triu_indices(75, k=1))]
same = np.equal(*y[test][np.column_stack(np.triu_indices(75, k=1))].T)
points = pair_features(pairs, kinds=["abs_diff"]) * np.sqrt(2)
grid = np.stack(np.meshgrid(np.linspace(0, 5.5, 200), np.linspace(0, 2.6, 200)), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, name in zip(axes, ("CutSplitter", "MeansSplitter"), strict=True):
    inside = trees[name, 1].pair_score(np.stack([grid, np.zeros_like(grid)], axis=-2).reshape(-1, 2, 2)).reshape(200, 200)
    ax.contourf(*np.moveaxis(grid, -1, 0), inside, levels=[1.5, 2.5], colors=["#b5d5ea"])
    for kind, colour, label in ((~same, "#d06f00", "different"), (same, "#1f6fae", "same")):
        ax.plot(*points[kind].T, ".", ms=3, color=colour, label=label, alpha=0.5)
    ax.set(title=f"first region of {name}", xlabel="difference of petal lengths")
axes[0].set_ylabel("difference of petal widths")
axes[0].legend(frameon=False, markerscale=4)
plt.show()
