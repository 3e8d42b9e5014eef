"""The choice of a similarity, or of a fusion of several, by scores of held-out pairs; and an honest figure of what was chosen.

Candidates are compared by the criterion of `_selection`. A fusion is fitted on the scores of some folds and judged on another
fold of the same partition, whose pairs neither its members nor its weights have seen. The figure that is reported is nested:
for each fold, members and weights are chosen on the other folds alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simtree.evaluation import Estimate
from simtree.evaluation._intervals import placements, point_intervals
from simtree.metrics import FloatArray, Roc, roc_curve
from simtree.models._fusion import Fusion, MonotoneMap, fit_map, fit_weights
from simtree.models._selection import Units, criterion
from simtree.pairs._sources import IndexPairs

# A fusion is of at most this many candidates, the best by the criterion.
MAX_MEMBERS = 4
# A member whose share in the fused score is smaller adds nothing.
MIN_SHARE = 0.02
# A fusion must be better than the best of its members by this much in the criterion.
TOLERANCE = 0.002
# A candidate whose ratios have a higher correlation with those of a better one says the same.
MAX_CORRELATION = 0.999
# So many candidates that may still be the best are asked again in a later partition.
MAX_NEAR = 6
# Numbers of same and of different pairs of a fold that maps, and weights, are fitted on; more hardly change them.
FOR_MAPS, FOR_WEIGHTS = (40_000, 120_000), (6_000, 18_000)
# Share of same pairs that weights are fitted for, per false positive rate: where the ROC curve has a slope of 1 / (10 rate),
# a decision for this prior has about this rate.
PRIOR_PER_RATE, MAX_PRIOR = 10.0, 0.5
# The ranking is stable if the best candidate leads by this many standard errors, or if one is this small.
MIN_LEAD, SMALL_ERROR = 2.0, 0.005

# A test is drawn by chance, too, and usually has fewer units: figures of all units and of a third as many new ones differ by so
# many times the error of the former.
NEW_UNITS = (1.0 + 3.0) ** 0.5

Folds = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of candidates on the held-out pairs of one fold.

    Parameters
    ----------
    repeat : int
        Number of the partition that the fold belongs to.
    pairs : IndexPairs
        The pairs.
    scores : mapping of str to ndarray
        Scores of each candidate.
    """

    repeat: int
    pairs: IndexPairs
    scores: Mapping[str, FloatArray]


class Chooser:
    """Choose members on any subset of folds.

    Parameters
    ----------
    folds : sequence of HeldOutScores
        Scores of the same candidates on each fold.
    fpr : float
        Target false positive rate of the criterion.
    """

    def __init__(self, folds: Sequence[HeldOutScores], fpr: float) -> None:
        self.folds = folds
        self.fpr = fpr
        self.prior = min(PRIOR_PER_RATE * fpr, MAX_PRIOR)
        self.names = list(folds[0].scores)
        self.rocs = {name: [roc_curve(fold.scores[name], fold.pairs.same) for fold in folds] for name in self.names}
        self.criteria = {name: np.array([criterion(roc, fpr) for roc in self.rocs[name]]) for name in self.names}
        self._thinned = {most: [_thin(fold.pairs.same, most) for fold in folds] for most in (FOR_MAPS, FOR_WEIGHTS)}
        self._maps: dict[tuple[str, Folds], MonotoneMap] = {}
        self._known_ratios: dict[tuple[str, Folds, int], FloatArray] = {}
        self._known_thinned: dict[tuple[str, Folds], FloatArray] = {}
        self._known_shares: dict[tuple[tuple[str, ...], Folds], FloatArray] = {}
        self._known_members: dict[Folds, tuple[str, ...]] = {}

    @property
    def all_folds(self) -> Folds:
        """Numbers of all folds."""
        return tuple(range(len(self.folds)))

    def ranking(self, folds: Folds) -> list[str]:
        """Return the candidates by their mean criterion, best first; among equals the first given."""
        return sorted(self.names, key=lambda name: -float(np.mean(self.criteria[name][list(folds)])))

    def is_stable(self) -> bool:
        """Return whether more folds would hardly change which candidate is the best."""
        return all(error <= SMALL_ERROR or lead >= MIN_LEAD * error for lead, error in self._leads())

    def contenders(self) -> list[str]:
        """Return the few candidates that more folds may show to be the best, and those that are chosen now."""
        chosen = self.members(self.all_folds)
        ranking = self.ranking(self.all_folds)
        near = [name for name, (lead, error) in zip(ranking[1:], self._leads(), strict=True) if lead < MIN_LEAD * error]
        return [name for name in self.names if name in (*chosen, ranking[0], *near[:MAX_NEAR])]

    def _leads(self) -> list[tuple[float, float]]:
        """Return how far the best candidate is ahead of each other one, from the second best on, and the standard error."""
        best, *others = self.ranking(self.all_folds)
        leads = [self.criteria[best] - self.criteria[name] for name in others]
        n = len(self.folds)
        return [(float(np.mean(lead)), float(np.std(lead, ddof=1)) / np.sqrt(n) if n > 1 else np.inf) for lead in leads]

    def members(self, folds: Folds) -> tuple[str, ...]:
        """Return the members chosen on these folds: the best candidates, if their fusion is better than the best alone.

        The fusion is judged on folds that its weights have not seen. Other sets of members are not tried: the more sets are
        compared, the more often chance decides.
        """
        if folds not in self._known_members:
            self._known_members[folds] = self._choose(folds)
        return self._known_members[folds]

    def _choose(self, folds: Folds) -> tuple[str, ...]:
        best, *_ = distinct = self._distinct(folds)
        members = self._with_shares(tuple(distinct), folds)
        fused = self.cross_fitted(members, folds) if len(members) > 1 else None
        self._known_ratios.clear()  # they take much memory
        self._known_thinned.clear()
        alone = float(np.mean(self.criteria[best][list(folds)]))
        return members if fused is not None and fused > alone + TOLERANCE else (best,)

    def _distinct(self, folds: Folds) -> list[str]:
        """Return the best few candidates, without those that say the same as a better one."""
        found: list[str] = []
        for name in self.ranking(folds):
            ratios = self._ratios(name, folds)
            if np.ptp(ratios) > 0.0 and all(
                np.corrcoef(ratios, self._ratios(other, folds))[0, 1] <= MAX_CORRELATION for other in found
            ):
                found.append(name)
            if len(found) == MAX_MEMBERS:
                break
        return found or self.ranking(folds)[:1]

    def value(self, members: Sequence[str]) -> float | None:
        """Return the mean criterion of a member, or of a fusion on folds that its weights have not seen."""
        if len(members) == 1:
            return float(np.mean(self.criteria[members[0]]))
        return self.cross_fitted(members, self.all_folds)

    def cross_fitted(self, members: Sequence[str], folds: Folds) -> float | None:
        """Return the mean criterion of a fusion on folds that its weights have not seen; None if there are no such folds."""
        values = []
        for fold in folds:
            others = self._others(fold, folds)
            if others:
                fused = self._fused(members, others, fold)
                values.append(criterion(roc_curve(fused, self.folds[fold].pairs.same), self.fpr))
        return float(np.mean(values)) if len(values) == len(folds) else None

    def fusion(self, members: Sequence[str], folds: Folds) -> Fusion:
        """Return the fusion of members fitted on these folds."""
        maps = tuple(self._map(name, folds) for name in members)
        ratios = np.column_stack([self._ratios(name, folds) for name in members])
        return Fusion(maps, *fit_weights(ratios, self._same(folds, FOR_WEIGHTS), self.prior))

    def shares(self, members: tuple[str, ...], folds: Folds) -> FloatArray:
        """Return the share of each member in the fused score: its weight times the spread of its ratios."""
        if (members, folds) not in self._known_shares:
            spreads = np.array([np.std(self._ratios(name, folds)) for name in members])
            parts = self.fusion(members, folds).weights * spreads
            self._known_shares[members, folds] = parts / max(float(parts.sum()), np.finfo(np.float64).tiny)
        return self._known_shares[members, folds]

    def nested_scores(self) -> list[FloatArray] | None:
        """Return scores of each fold by what is chosen on the other folds of its partition; None if there is only one."""
        nested = []
        for fold in self.all_folds:
            others = self._others(fold, self.all_folds)
            if not others:
                return None
            members = self.members(others)
            alone = self.folds[fold].scores[members[0]]
            nested.append(alone if len(members) == 1 else self._fused(members, others, fold))
        return nested

    def out_of_fold(self, members: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return fused scores of all pairs, each by weights that have not seen its fold, and whether they are same pairs."""
        fused = []
        for fold in self.all_folds:
            fused.append(self._fused(members, self._others(fold, self.all_folds), fold))
        return np.concatenate(fused), np.concatenate([fold.pairs.same for fold in self.folds])

    def _fused(self, members: Sequence[str], others: Folds, fold: int) -> FloatArray:
        """Return the scores of a fold by the fusion of members fitted on other folds."""
        for name in members:  # sets of members have most members in common
            if (name, others, fold) not in self._known_ratios:
                ratios = self._map(name, others).apply(self.folds[fold].scores[name])
                self._known_ratios[name, others, fold] = ratios
        return self.fusion(members, others).combine([self._known_ratios[name, others, fold] for name in members])

    def _with_shares(self, members: tuple[str, ...], folds: Folds) -> tuple[str, ...]:
        """Return the members without those that add nothing, one after the other."""
        while len(members) > 1 and min(self.shares(members, folds)) < MIN_SHARE:
            members = self._without_least(members, folds)
        return members

    def _without_least(self, members: tuple[str, ...], folds: Folds) -> tuple[str, ...]:
        """Return the members without the one that has the smallest share."""
        least = int(np.argmin(self.shares(members, folds)))
        return members[:least] + members[least + 1 :]

    def _others(self, fold: int, folds: Folds) -> Folds:
        """Return the other folds of the same partition: those of another one share pairs with it."""
        return tuple(k for k in folds if k != fold and self.folds[k].repeat == self.folds[fold].repeat)

    def _map(self, name: str, folds: Folds) -> MonotoneMap:
        if (name, folds) not in self._maps:
            self._maps[name, folds] = fit_map(self._scores(name, folds, FOR_MAPS), self._same(folds, FOR_MAPS))
        return self._maps[name, folds]

    def _ratios(self, name: str, folds: Folds) -> FloatArray:
        if (name, folds) not in self._known_thinned:
            self._known_thinned[name, folds] = self._map(name, folds).apply(self._scores(name, folds, FOR_WEIGHTS))
        return self._known_thinned[name, folds]

    def _scores(self, name: str, folds: Folds, most: tuple[int, int]) -> FloatArray:
        return np.concatenate([self.folds[k].scores[name][self._thinned[most][k]] for k in folds])

    def _same(self, folds: Folds, most: tuple[int, int]) -> NDArray[np.bool_]:
        return np.concatenate([self.folds[k].pairs.same[self._thinned[most][k]] for k in folds])


def _thin(same: NDArray[np.bool_], most: tuple[int, int]) -> NDArray[np.int64]:
    """Return the numbers of at most so many same and different pairs, at even distances."""
    kept = []
    for kind, n in zip((same, ~same), most, strict=True):
        numbers = np.flatnonzero(kind)
        step = max(1.0, len(numbers) / n)
        kept.append(numbers[np.arange(0, len(numbers), step).astype(np.int64)])
    return np.concatenate(kept)


def judge(
    scores: Sequence[FloatArray], folds: Sequence[HeldOutScores], units: Units, fpr: float, confidence: float
) -> dict[str, Estimate]:
    """Return the TPR at a false positive rate and the AUC, means over folds, with intervals for a test.

    An interval holds what will be measured on a third as many other units, not only the mean of all there are.

    Parameters
    ----------
    scores : sequence of arrays
        Scores of the pairs of each fold.
    folds : sequence of HeldOutScores
        The folds.
    units : ndarray of shape (n_samples,)
        What would be drawn anew: identities, samples or groups.
    fpr : float
        False positive rate.
    confidence : float
        Level of the intervals.

    Returns
    -------
    dict
        Estimates ``tpr`` and ``auc``.
    """
    rocs = [roc_curve(part, fold.pairs.same) for part, fold in zip(scores, folds, strict=True)]
    # Scores of two folds are of two models. As shares of the fold's own different pairs they can be counted together.
    placed = [placements(part, part[~fold.pairs.same]) for part, fold in zip(scores, folds, strict=True)]
    same = np.concatenate([fold.pairs.same for fold in folds])
    first, second = (np.concatenate([units[getattr(fold.pairs, side)] for fold in folds]) for side in ("first", "second"))
    of_auc, of_tpr = point_intervals(np.concatenate(placed), same, first, second, [fpr], confidence=confidence)
    return {
        "tpr": _estimate(mean_tpr(rocs, fpr), of_tpr),
        "auc": _estimate(float(np.mean([roc.auc() for roc in rocs])), of_auc),
    }


def _estimate(value: float, ends: FloatArray) -> Estimate:
    """Return a value with an interval for a third as many new units, from one for all, which ties may have moved off it."""
    low, high = (value + NEW_UNITS * (float(end) - value) for end in ends)
    return Estimate(value, min(max(low, 0.0), value), max(min(high, 1.0), value))


def mean_tpr(rocs: Sequence[Roc], fpr: float) -> float:
    """Return the mean of the interpolated TPR at a false positive rate."""
    return float(np.mean([roc.at(fpr) for roc in rocs]))
