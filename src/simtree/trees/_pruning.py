"""Pruning: merge the children of a cell if the area they add under the ROC curve does not justify the additional cells.

The AUC of a subtree is one half plus half the sum of the gains of its splits, so splits can be judged one by one. The
criterion is AUC - penalty * (number of terminal cells). As the penalty grows, the best subtree shrinks, and each best subtree
is nested in the previous one (weakest-link pruning of Breiman et al. 1984, with the AUC in place of the error).
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree.io._fields import Fields
from simtree.pairs._coordinates import SamplePairs
from simtree.trees._rank_tree import RankTree, TreeBuilder


class PruningPath(NamedTuple):
    """The nested subtrees of a tree, from the full tree to the root alone.

    Parameters
    ----------
    penalties : ndarray of shape (n_subtrees,)
        Smallest penalty for which each subtree is the best; the first is 0.
    aucs : ndarray of shape (n_subtrees,)
        AUC of each subtree on the training pairs.
    n_leaves : ndarray of int of shape (n_subtrees,)
        Number of terminal cells of each subtree.
    """

    penalties: NDArray[np.float64]
    aucs: NDArray[np.float64]
    n_leaves: NDArray[np.int64]

    def _get_state(self) -> dict[str, Any]:
        """Return the state of the path for a model file."""
        return self._asdict()

    @classmethod
    def _from_state(cls, fields: Fields) -> PruningPath:
        """Return the path read from a model file."""
        penalties = fields.array("penalties", "float64", (None,), low=0.0)
        aucs = fields.array("aucs", "float64", penalties.shape)
        return cls(penalties, aucs, fields.array("n_leaves", "int64", penalties.shape, low=1))


def critical_penalties(tree: RankTree) -> NDArray[np.float64]:
    """Return the smallest penalty at which the split of each cell is undone; nan for terminal cells.

    The weakest link is the cell whose subtree adds the least AUC per additional terminal cell. Undoing it changes what the
    subtrees of its ancestors add, after which the next weakest link is found.
    """
    cells = tree.cells
    parent, split = cells.parent, cells.inside >= 0
    added_auc = np.where(split, 0.5 * cells.gain, 0.0)
    added_leaves = split.astype(np.int64)
    for cell in range(tree.n_cells - 1, 0, -1):  # children come after their parent
        added_auc[parent[cell]] += added_auc[cell]
        added_leaves[parent[cell]] += added_leaves[cell]
    critical = np.full(tree.n_cells, np.nan)
    links = [(added_auc[cell] / added_leaves[cell], int(cell)) for cell in np.flatnonzero(split)]
    heapq.heapify(links)
    penalty = 0.0
    while links:
        strength, cell = heapq.heappop(links)
        if not np.isnan(critical[cell]) or strength != added_auc[cell] / added_leaves[cell]:
            continue  # already undone with an ancestor, or an outdated entry
        penalty = max(penalty, strength)  # rounding must not make the path decrease
        lost_auc, lost_leaves = added_auc[cell], added_leaves[cell]
        below = [cell]
        while below:
            undone = below.pop()
            if split[undone] and np.isnan(critical[undone]):
                critical[undone] = penalty
                below += [int(cells.inside[undone]), int(cells.outside[undone])]
        above = int(parent[cell])
        while above >= 0:
            added_auc[above] -= lost_auc
            added_leaves[above] -= lost_leaves
            heapq.heappush(links, (added_auc[above] / added_leaves[above], above))
            above = int(parent[above])
    return critical


def pruning_path(tree: RankTree) -> PruningPath:
    """Return the subtrees that are best for some penalty."""
    critical = critical_penalties(tree)
    splits = np.flatnonzero(~np.isnan(critical))
    splits = splits[np.argsort(critical[splits], kind="stable")]
    steps = np.unique(critical[splits])
    penalties = np.concatenate([[0.0], steps]) if not len(steps) or steps[0] > 0.0 else steps
    # Number of splits undone at each penalty, and the total gain of the remaining ones.
    n_undone = np.searchsorted(critical[splits], penalties, side="right")
    left = np.concatenate([np.cumsum(tree.cells.gain[splits][::-1])[::-1], [0.0]])
    return PruningPath(penalties, 0.5 + 0.5 * left[n_undone], 1 + len(splits) - n_undone)


def prune(tree: RankTree, penalty: float) -> RankTree:
    """Return the smallest subtree that maximises AUC - penalty * (number of terminal cells)."""
    keep = critical_penalties(tree) > penalty
    cells = tree.cells
    builder = TreeBuilder(tree.pair_map, tree.max_depth, int(cells.n_same[0]), int(cells.n_different[0]))
    number = {0: 0}
    for cell in np.flatnonzero(keep).tolist():
        inside, outside = int(cells.inside[cell]), int(cells.outside[cell])
        counts = int(cells.n_same[inside]), int(cells.n_different[inside])
        number[inside], number[outside] = builder.split(number[cell], tree.region(cell), *counts)
    return builder.freeze()


def held_out_gains(tree: RankTree, pairs: SamplePairs, same: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the gain of each split on held-out pairs: twice what it adds to the AUC of any subtree that contains it."""
    cells = tree.cells
    reached = tree.apply(pairs)
    counts = [np.bincount(reached[kind], minlength=tree.n_cells).astype(np.float64) for kind in (same, ~same)]
    for count in counts:
        for cell in range(tree.n_cells - 1, 0, -1):
            count[cells.parent[cell]] += count[cell]
    tpr, fpr = (count / count[0] for count in counts)
    gains = np.zeros(tree.n_cells)
    split = np.flatnonzero(cells.inside >= 0)
    inside = cells.inside[split]
    gains[split] = fpr[split] * tpr[inside] - tpr[split] * fpr[inside]
    return gains


def held_out_aucs(tree: RankTree, gains: NDArray[np.float64], penalties: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the AUC of the subtree for each penalty on held-out pairs, given the gains of all splits on these pairs."""
    critical = critical_penalties(tree)
    return np.array([0.5 + 0.5 * gains[critical > penalty].sum() for penalty in penalties])
