"""Recognition of training data among data that should be held out, by the out-of-bag scores that a forest keeps.

There are two signs of training data.

Same pairs of the training data score higher than same pairs that a forest has not seen. A forest with ``oob_score=True``
keeps a few quantiles of the out-of-bag scores of same pairs. Out-of-bag scores average over some of the trees only, and are
therefore more dispersed than other scores: new pairs are scored by as few trees, sampled at random. Then the share of new same
pairs above each quantile is what it was out of bag, up to the variation between identities.

The random seed of a forest tells the rows that each tree was grown on. If the table is the training table, in its order, trees
score pairs of their own rows higher than other trees do; for any other table there is no such difference. This is certain, but
only for the training table as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simtree.growing._bagging import draw_bag, out_of_bag_values, tree_rng
from simtree.io._fields import Fields
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import with_rows
from simtree.trees._rank_tree import RankTree

# Quantiles of the out-of-bag scores of same pairs that a forest keeps.
LEVELS = np.array([0.1, 0.25, 0.5, 0.75])
# Maximum number of same pairs that are scored, and the number scored at a time.
MAX_PAIRS = 20_000
BLOCK = 4096
# Standard errors by which a share must exceed its out-of-bag value for data to be taken for training data;
# benchmarks/bench_held_out.py counts false alarms.
MAX_EXCESS = 4.0
# With fewer identities the standard error of a difference between trees is too uncertain.
MIN_IDENTITIES_TO_COMPARE = 8


@dataclass(frozen=True)
class OutOfBagScores:
    """Summary of the out-of-bag scores of same pairs.

    Parameters
    ----------
    tree_share : float
        Mean share of the trees for which a same pair is out of bag.
    quantiles : ndarray of shape (n_levels,)
        Quantiles of the scores at `LEVELS`.
    shares : ndarray of shape (n_levels,)
        Share of the same pairs at or above each quantile.
    spreads : ndarray of shape (n_levels,)
        Standard deviation of these shares between identities.
    n_identities : float
        Number of identities, of equal size, that would have the same variance.
    """

    tree_share: float
    quantiles: NDArray[np.float64]
    shares: NDArray[np.float64]
    spreads: NDArray[np.float64]
    n_identities: float

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], identities: NDArray[np.int64], tree_share: float) -> Self:
        """Return the summary of scores of same pairs, with the identity of each pair."""
        quantiles = np.quantile(scores, LEVELS)
        shares, variances, n_identities = _shares(scores, identities, quantiles)
        return cls(tree_share, quantiles, shares, np.sqrt(variances * n_identities), n_identities)

    def excess(self, scores: NDArray[np.float64], identities: NDArray[np.int64]) -> float:
        """Return by how many standard errors new same pairs exceed the out-of-bag ones, at the level where it is most."""
        shares, variances, n_identities = _shares(scores, identities, self.quantiles)
        expected = self.spreads**2
        errors = np.sqrt(np.maximum(variances, expected / n_identities) + expected / self.n_identities)
        return float(np.max((shares - self.shares) / np.maximum(errors, 1e-12)))

    def _get_state(self) -> dict[str, Any]:
        return {
            "tree_share": self.tree_share,
            "quantiles": self.quantiles,
            "shares": self.shares,
            "spreads": self.spreads,
            "n_identities": self.n_identities,
        }

    @classmethod
    def _from_state(cls, fields: Fields) -> Self:
        n = len(LEVELS)
        quantiles = fields.array("quantiles", "float64", (n,))
        if (np.diff(quantiles) < 0.0).any():
            raise fields.fail("quantiles", "must be in increasing order")
        return cls(
            tree_share=fields.number("tree_share", 0.0, 1.0),
            quantiles=quantiles,
            shares=fields.array("shares", "float64", (n,), low=0.0, high=1.0),
            spreads=fields.array("spreads", "float64", (n,), low=0.0, high=1e9),
            n_identities=fields.number("n_identities", 1.0, 1e18),
        )


@dataclass(frozen=True)
class HeldOutCheck:
    """Whether calibration data look like the training data.

    Parameters
    ----------
    excess : float or None
        Standard errors by which same pairs score higher than they would if they were new; None if the model cannot tell.

    Examples
    --------
    >>> HeldOutCheck(9.0).suspicious, HeldOutCheck(1.2).suspicious, HeldOutCheck(None).suspicious
    (True, False, None)
    """

    excess: float | None

    @property
    def suspicious(self) -> bool | None:
        """Whether the data look like training data; None if the model cannot tell."""
        return None if self.excess is None else self.excess > MAX_EXCESS

    def __str__(self) -> str:
        if self.excess is None:
            return "it cannot be checked whether these data were used in fit: the model has no out-of-bag scores"
        if self.suspicious:
            return (
                f"same pairs score {self.excess:.1f} standard errors higher than pairs that were not used in fit: these data "
                "look like the training data, and rates found on training data do not hold for new data"
            )
        return "same pairs do not score higher than pairs that were not used in fit"

    def _get_state(self) -> dict[str, Any]:
        return {"excess": self.excess}

    @classmethod
    def _from_state(cls, fields: Fields) -> Self:
        return cls(fields.number("excess") if fields.has("excess") else None)


def summarise_out_of_bag(
    trees: Sequence[RankTree],
    values: Sequence[NDArray[np.float64]],
    bags: Sequence[NDArray[np.bool_]],
    samples: NDArray[Any],
    source: PairSource,
    units: NDArray[np.int64],
) -> OutOfBagScores | None:
    """Return the summary of the out-of-bag scores of same pairs; None if fewer than two identities have any.

    Parameters
    ----------
    trees, values, bags
        As in `out_of_bag_values`.
    samples : ndarray of shape (n_samples, n_columns)
        Prepared training samples.
    source : PairSource
        The training pairs.
    units : ndarray of shape (n_samples,)
        Unit of each sample, which stands for its identity if pairs were given.
    """
    index = _same_pairs(source)
    identities = (units if source.labels is None else source.labels)[index.first]
    samples, index, rows_used = with_rows(samples, index)
    bags = [inside[rows_used] for inside in bags]
    scores, n_trees = np.full(len(index), np.nan), np.zeros(len(index))
    every = SamplePairs(samples, samples, index.first, index.second)
    for start in range(0, len(index), BLOCK):
        rows = slice(start, start + BLOCK)
        by_tree = out_of_bag_values(trees, values, bags, every.take(rows))
        scores[rows], n_trees[rows] = _mean(by_tree)
    known = n_trees > 0
    if len(np.unique(identities[known])) < 2:
        return None
    return OutOfBagScores.from_scores(scores[known], identities[known], float(n_trees[known].mean() / len(trees)))


def check_held_out(
    trees: Sequence[RankTree],
    values: Sequence[NDArray[np.float64]],
    kept: OutOfBagScores | None,
    bags: Sequence[NDArray[np.bool_]] | None,
    samples: NDArray[Any],
    source: PairSource,
    identities: NDArray[np.int64],
) -> HeldOutCheck:
    """Return whether same pairs have a sign of training data.

    Parameters
    ----------
    trees : sequence of RankTree
        The trees of the forest.
    values : sequence of ndarrays
        The cell values of each tree.
    kept : OutOfBagScores or None
        Summary of the out-of-bag scores.
    bags : sequence of ndarrays of bool, or None
        The samples that each tree would have been grown on if this were the training table.
    samples : ndarray of shape (n_samples, n_columns)
        Prepared samples.
    source : PairSource
        Pairs of them.
    identities : ndarray of shape (n_samples,)
        Identity of each sample.
    """
    index = _same_pairs(source)
    of_pairs = identities[index.first]
    samples, index, rows_used = with_rows(samples, index)
    bags = None if bags is None else [inside[rows_used] for inside in bags]
    scores, n_trees, differences = np.empty(len(index)), np.empty(len(index)), np.full(len(index), np.nan)
    rng = np.random.default_rng(0)
    every = SamplePairs(samples, samples, index.first, index.second)
    for start in range(0, len(index), BLOCK):
        rows = slice(start, start + BLOCK)
        pairs = every.take(rows)
        by_tree = np.zeros((len(trees), pairs.n_pairs))
        for row, tree, of_cells in zip(by_tree, trees, values, strict=True):
            tree.add_values(pairs, of_cells, row)
        if bags is not None:
            differences[rows] = _bag_differences(by_tree, bags, pairs)
        if kept is not None:
            by_tree[rng.random(by_tree.shape) >= kept.tree_share] = np.nan
            scores[rows], n_trees[rows] = _mean(by_tree)
    known = ~np.isnan(differences)
    excess = _standardised(differences[known], of_pairs[known])
    if kept is not None and len(np.unique(of_pairs[n_trees > 0])) >= 2:
        return HeldOutCheck(max(excess, kept.excess(scores[n_trees > 0], of_pairs[n_trees > 0])))
    return HeldOutCheck(excess if excess > MAX_EXCESS else None)


def bags_of_table(
    source: PairSource, units: NDArray[np.int64], n_drawn: int, entropy: tuple[int, ...], n_trees: int
) -> list[NDArray[np.bool_]] | None:
    """Return the samples that each tree would have been grown on if this were the training table; None if it cannot be."""
    try:
        drawn = [draw_bag(source, units, n_drawn, tree_rng(entropy, number))[1] for number in range(n_trees)]
    except ValueError:  # no bag with both kinds: the forest was not grown on this table
        return None
    return [inside for inside in drawn if inside is not None]


def _bag_differences(
    by_tree: NDArray[np.float64], bags: Sequence[NDArray[np.bool_]], pairs: SamplePairs
) -> NDArray[np.float64]:
    """Return, for each pair, its mean value in trees grown on both of its samples minus that in trees grown on neither."""
    first, second = (np.stack([inside[rows] for inside in bags]) for rows in (pairs.first, pairs.second))
    centred = by_tree - by_tree.mean(axis=1, keepdims=True)  # some trees have higher values than others
    (inside, n_inside), (outside, n_outside) = (
        _mean(np.where(chosen, centred, np.nan)) for chosen in (first & second, ~first & ~second)
    )
    return np.where((n_inside > 0) & (n_outside > 0), inside - outside, np.nan)


def _standardised(differences: NDArray[np.float64], identities: NDArray[np.int64]) -> float:
    """Return the mean difference in standard errors, by the variation between identities; 0 if there are too few."""
    _, numbers = np.unique(identities, return_inverse=True)
    if len(numbers) == 0 or numbers.max() + 1 < MIN_IDENTITIES_TO_COMPARE:
        return 0.0
    sums, sizes = np.bincount(numbers, weights=differences), np.bincount(numbers)
    mean, n = differences.mean(), len(sizes)
    error = np.sqrt(((sums - sizes * mean) ** 2).sum() * n / (n - 1)) / len(differences)
    return float(mean / max(error, 1e-12)) if mean else 0.0


def _same_pairs(source: PairSource) -> IndexPairs:
    """Return at most `MAX_PAIRS` same pairs."""
    rng = np.random.default_rng(0)
    if source.labels is None:
        return source.same_pairs().subsample(MAX_PAIRS, rng)
    return source.subsample(2 * MAX_PAIRS, rng).same_pairs()


def _mean(by_tree: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean value and the number of the trees that are not nan, for each pair."""
    n_trees = np.count_nonzero(~np.isnan(by_tree), axis=0).astype(np.float64)
    return np.nansum(by_tree, axis=0) / np.maximum(n_trees, 1.0), n_trees


def _shares(
    scores: NDArray[np.float64], identities: NDArray[np.int64], quantiles: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the shares of scores at or above each quantile, their variances, and the effective number of identities."""
    _, numbers = np.unique(identities, return_inverse=True)
    sizes = np.bincount(numbers).astype(np.float64)
    above = scores[:, None] >= quantiles
    sums = np.stack([np.bincount(numbers, weights=column) for column in above.T], axis=1)
    shares = above.mean(axis=0)
    n = len(sizes)
    variances = ((sums - sizes[:, None] * shares) ** 2).sum(axis=0) / sizes.sum() ** 2 * (n / (n - 1))
    return shares, variances, float(sizes.sum() ** 2 / (sizes**2).sum())
