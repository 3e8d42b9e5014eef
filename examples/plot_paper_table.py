r"""
The paper's Table 1 in small
============================

Clémençon and Vogel (2019) draw pairs from random distributions whose optimal ROC curve is known, and measure how far
the curve of a learned tree is from it. These are their rows on model bias, with 30 runs each instead of 400; ``simtree
reproduce table1`` runs the whole table.
"""

# %%
# A distribution is a random tree of depth 3 over sums and absolute differences: eight cells, each with a weight among
# the same and one among the different pairs. Trees of depth 1, 2, 3 and 8 are grown from 1118 pairs, with single cuts.
import matplotlib.pyplot as plt
import numpy as np

from simtree import SimilarityTree
from simtree.datasets import make_tree_law
from simtree.metrics import roc_curve, roc_sup_distance

DEPTHS = (1, 2, 3, 8)


def run(seed):
    """Return the optimal ROC curve of a distribution, and the curve of a tree of each depth on test pairs."""
    law = make_tree_law(3, random_state=seed)
    pairs, same = law.sample(1118, random_state=seed + 1000)
    test_pairs, test_same = law.sample(20_000, random_state=seed + 2000)
    trees = [
        SimilarityTree(max_depth=depth, splitter="cut", max_bins=None, random_state=0).fit(pairs, same) for depth in DEPTHS
    ]
    return law.optimal_roc, [roc_curve(tree.pair_score(test_pairs), test_same) for tree in trees]


runs = [run(seed) for seed in range(30)]

# %%
# :math:`D_1` is the area between the curves (the paper prints :math:`\mathrm{AUC}^* - \mathrm{AUC}`) and
# :math:`D_\infty` their greatest vertical distance:
#
# .. math:: D_\infty = \sup_{\alpha \in [0, 1]} \left| \mathrm{ROC}^*(\alpha) - \mathrm{ROC}(\alpha) \right|.
#
# Behind ± stands twice the standard error of our mean: with 30 runs, more than the paper's rounding.
d_1 = np.array([[best.auc() - curve.auc() for curve in curves] for best, curves in runs])
d_inf = np.array([[roc_sup_distance(curve, best) for curve in curves] for best, curves in runs])
printed = {1: (0.21, 0.65), 2: (0.11, 0.43), 3: (0.07, 0.30), 8: (0.06, 0.28)}
print("depth    D_1: here   paper     D_inf: here   paper")
for k, depth in enumerate(DEPTHS):
    (m_1, e_1), (m_inf, e_inf) = ((d[:, k].mean(), 2 * d[:, k].std() / np.sqrt(len(d))) for d in (d_1, d_inf))
    print(
        f"{depth:5}   {m_1:.2f} ± {e_1:.2f}   {printed[depth][0]:.2f}     {m_inf:.2f} ± {e_inf:.2f}   {printed[depth][1]:.2f}"
    )

# %%
# Left, the curves of one run: each level of the tree brings its curve nearer to the optimal one. Right, all runs: the
# distributions differ much from each other, and even depth 8 leaves a gap, because 1118 pairs do not show where the
# cells end.
best, curves = runs[0]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
axes[0].plot(best.fpr, best.tpr, color="black", lw=2, label="optimal")
for depth, curve in zip(DEPTHS, curves, strict=True):
    axes[0].plot(curve.fpr, curve.tpr, label=f"depth {depth}")
axes[0].set(xlabel="False positive rate", ylabel="True positive rate", title="one run")
axes[0].legend(frameon=False)
axes[1].boxplot(d_1, tick_labels=[str(depth) for depth in DEPTHS])
axes[1].set(xlabel="depth of the tree", ylabel="$D_1$", title="30 runs", ylim=(0, None))
plt.show()
