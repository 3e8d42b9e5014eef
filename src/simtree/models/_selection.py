"""How models are compared on labelled samples or given pairs: the criterion, the folds, and scores of held-out pairs.

A model is judged by the pairs of a fold that it has not seen. The criterion is the mean of its TPR at several false positive
rates around a target. The TPR is interpolated, so that a tie that exceeds a rate counts for its share instead of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from simtree.growing._cross_validation import fold_numbers
from simtree.metrics import FloatArray, Roc
from simtree.pairs._coordinates import occurring
from simtree.pairs._cross_validation import assign_identities
from simtree.pairs._labels import linked_units
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.representation._applied import fit_representation, represent

Units = NDArray[np.int64]

# The criterion is a mean over this many rates, from the target divided by SPREAD to the target times SPREAD.
N_RATES = 5
SPREAD = 10**0.5
# A rate is measured only if at least this many different pairs of a fold lie at it, and never above MAX_TARGET.
MIN_DIFFERENT = 30
MAX_TARGET = 1.0 / SPREAD
N_FOLDS = 3
# Numbers of samples, and of pairs in a fold, that models are compared on. Same pairs are a fifth: both kinds are then measured.
MAX_SAMPLES = 12_000
VALIDATION_PAIRS = 200_000
SAME_SHARE = 0.2
# If there are more samples than are compared, whole units are dropped if there are more units than this.
MAX_UNITS_KEPT = 20


def criterion_rates(fpr: float) -> FloatArray:
    """Return the false positive rates that the criterion is a mean over.

    Examples
    --------
    >>> criterion_rates(0.01).round(4).tolist()
    [0.0032, 0.0056, 0.01, 0.0178, 0.0316]
    """
    return np.minimum(fpr * np.geomspace(1.0 / SPREAD, SPREAD, N_RATES), 1.0)


def criterion(roc: Roc, fpr: float) -> float:
    """Return the mean of the interpolated TPR over rates around ``fpr``.

    Examples
    --------
    >>> round(criterion(Roc([0.0, 0.5, 1.0], [0.0, 1.0, 1.0]), 0.1), 3)  # one cell at the top: on the line from (0, 0)
    0.273
    """
    return float(np.mean(roc.at(criterion_rates(fpr))))


def measurable_rate(target: float, n_different: int) -> float:
    """Return the target, or the lowest rate that this many different pairs can measure.

    Examples
    --------
    >>> measurable_rate(1e-3, 100_000), measurable_rate(1e-3, 3_000)
    (0.001, 0.01)
    """
    return min(max(target, MIN_DIFFERENT / max(n_different, 1)), max(target, MAX_TARGET))


def fold_units(source: PairSource, n_samples: int, open_set: bool, groups: Units | None) -> Units:
    """Return what a fold never splits, as a number per sample.

    Labelled samples: identities of an open set, otherwise samples; groups are kept together, with all identities that occur in
    them if the set is open. Given pairs: groups, or samples.

    Examples
    --------
    >>> people = PairSampler(["a", "a", "b", "b", "c", "c"])
    >>> fold_units(people, 6, True, np.array([0, 0, 0, 1, 1, 2])).tolist()  # groups 0 and 1 share b, and 1 and 2 share c
    [0, 0, 0, 0, 0, 0]
    """
    if source.labels is None or not open_set:
        return np.arange(n_samples) if groups is None else groups
    if groups is None:
        return source.labels
    return linked_units(source.labels, groups)


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: the samples that models are fitted on, and the held-out pairs that they score.

    Parameters
    ----------
    repeat : int
        Number of the partition that the fold belongs to.
    seen : ndarray of bool of shape (n_samples,)
        Samples to fit on.
    pairs : IndexPairs
        Held-out pairs: both samples of each are not seen.
    """

    repeat: int
    seen: NDArray[np.bool_]
    pairs: IndexPairs


def make_folds(source: PairSource, units: Units, repeat: int, rng: np.random.Generator) -> list[Fold]:
    """Return the folds of one random partition of the units that have same and different pairs on both sides.

    Two folds are made where three are too many. The list is empty if there is none.
    """
    for n_folds in range(N_FOLDS, 1, -1):
        if int(units.max()) + 1 < n_folds:
            continue
        numbers = _numbers(source, units, n_folds, rng)
        folds = []
        for fold in range(n_folds):
            left_out = source.restrict(numbers == fold)
            if left_out is not None and source.restrict(numbers != fold) is not None:
                pairs = left_out.sample(VALIDATION_PAIRS, rng, positive_fraction=SAME_SHARE, shuffle=False)
                folds.append(Fold(repeat, numbers != fold, pairs.subsample(VALIDATION_PAIRS, rng)))
        if len(folds) == n_folds or (folds and n_folds == 2):
            return folds
    return []


def _numbers(source: PairSource, units: Units, n_folds: int, rng: np.random.Generator) -> Units:
    """Return the fold of each sample."""
    if source.labels is not None:
        return fold_numbers(units, source, n_folds, rng)
    pairs = source.sample(None, rng)
    used, numbers = np.unique(units[np.column_stack([pairs.first, pairs.second])], return_inverse=True)
    state = np.random.RandomState(int(rng.integers(2**31)))
    folds = np.full(int(units.max()) + 1, -1)
    folds[used] = assign_identities(numbers.reshape(-1, 2), pairs.same, n_folds, state)
    return folds[units]


def some_rows(source: PairSource, units: Units, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the samples to compare models on: all, or whole units if there are many units, otherwise random samples."""
    n = len(units)
    if n <= MAX_SAMPLES or source.labels is None:
        return np.arange(n)
    n_units = int(units.max()) + 1
    if MAX_UNITS_KEPT < n_units < n:
        order = rng.permutation(n_units)
        sizes = np.bincount(units)[order]
        kept = order[: max(2 * N_FOLDS, int(np.searchsorted(np.cumsum(sizes), MAX_SAMPLES)))]
        return np.flatnonzero(np.isin(units, kept))
    return np.sort(rng.choice(n, MAX_SAMPLES, replace=False))


def restricted(source: PairSource, rows: NDArray[np.int64]) -> PairSource:
    """Return the pairs among some samples, in terms of the numbers of these samples."""
    given = source.given()
    if given is not None:
        chosen = np.zeros(1 + int(max(given.first.max(), given.second.max(), rows.max())), dtype=np.bool_)
        chosen[rows] = True
        pairs = given.take(chosen[given.first] & chosen[given.second])
        numbers = np.cumsum(chosen) - 1
        return IndexPairs(numbers[pairs.first].astype(np.int32), numbers[pairs.second].astype(np.int32), pairs.same)
    assert source.labels is not None
    return PairSampler(source.labels[rows], never_pair=None if source.never_pair is None else source.never_pair[rows])


def fit_arguments(source: PairSource) -> dict[str, Any]:
    """Return what ``fit`` of a similarity takes in addition to the samples."""
    given = source.given()
    if given is None:
        return {"y": source.labels, "never_pair": source.never_pair}
    return {"y": given.same, "pairs": np.column_stack([given.first, given.second])}


def groups_for(model: Any, groups: Units | None) -> dict[str, Units]:
    """Return the groups of samples as an argument of ``fit`` of a model, if there are any and it takes them.

    Examples
    --------
    >>> from simtree import DistanceSimilarity, SimilarityForest
    >>> [list(groups_for(model, np.zeros(4))) for model in (SimilarityForest(), DistanceSimilarity())]
    [['groups'], []]
    """
    return {} if groups is None or not has_fit_parameter(model, "groups") else {"groups": groups}


class HeldOut:
    """A fold with its samples, as a representation that is fitted inside the fold makes them.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        All samples.
    source : PairSource
        Their pairs.
    fold : Fold
        The fold.
    representation : transformer or None
        Transformer that is fitted on the samples that models are fitted on.
    groups : ndarray of shape (n_samples,), optional
        Group of each sample, for the models that take groups.
    """

    def __init__(
        self, samples: NDArray[Any], source: PairSource, fold: Fold, representation: Any, groups: Units | None = None
    ) -> None:
        rows = np.flatnonzero(fold.seen)
        self.groups = None if groups is None else groups[rows]
        self.fold = fold
        self.known = restricted(source, rows)
        test, numbers = occurring(samples, np.concatenate([fold.pairs.first, fold.pairs.second]))
        # What is missing may stay so: each model that is fitted says whether it takes that.
        fitted, self.samples = fit_representation(representation, samples[rows], self.known, allow_missing=True)
        self.test = test if fitted is None else represent(fitted, test, allow_missing=True)
        self.rows = np.column_stack(np.split(numbers, 2))

    def score(self, model: Any) -> FloatArray:
        """Fit a model on the samples of the fold, and return its scores of the held-out pairs.

        The model is for this alone: it has neither a ROC curve on its training pairs nor a threshold that follows from one.
        """
        model._only_scores = True
        model.fit(self.samples, **fit_arguments(self.known), **groups_for(model, self.groups))
        scores: FloatArray = model.pair_score(self.rows, self.test)
        if not np.isfinite(scores).all():
            raise ValueError("scores of held-out pairs are not finite; scale the samples.")
        return scores
