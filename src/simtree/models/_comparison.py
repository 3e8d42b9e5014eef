"""The comparison of candidates: their scores of held-out pairs, fold by fold, as far as a budget of seconds allows."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from simtree._utils.threads import submitted
from simtree._utils.validation import count
from simtree.metrics import FloatArray, Roc, roc_curve
from simtree.models import _presets as presets
from simtree.models._choice import Chooser, HeldOutScores
from simtree.models._selection import MAX_SAMPLES, Fold, HeldOut, Units, criterion, make_folds, measurable_rate
from simtree.models._timing import Budget, Cost, measure_cost
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.representation._applied import LabelsRequiredError

# Partitions into folds that are made at most: what a third one led to was not better for new samples of
# three tables (decision 16).
MAX_REPEATS = 2
# To estimate the time: members that a stack usually has, and the share of the time of all candidates in all folds that the
# first partition usually takes, if candidates are given up after its first fold, and that each later partition takes.
USUAL_MEMBERS, USUAL_SHARE, USUAL_CONTENDERS = 3, 0.6, 0.2
NO_TIME = "no time is left"
# What folds never split: groups link the classes of an open set that occur in the same one.
SAMPLES, CLASSES, LINKED_CLASSES, GROUPS = "samples", "classes", "linked classes", "groups"
# A candidate is given up after the first fold if the odds of its criterion are this many times lower than those of the best. A
# fold with fewer same pairs says too little, and so does one with fewer that count: of an identity, as many as it has samples.
FAR_BEHIND, MIN_SAME, MIN_COUNTED = 3.0, 300, 200
# Of the others, so many of the best are kept, and so many of the best of each class of models: a stack has members that differ
# in kind, and many distances that are alike must not take the places of forests.
MAX_KEPT, MAX_OF_CLASS = 6, 2


class _Timed(NamedTuple):
    """Scores of the held-out pairs of a fold, and the seconds that they took."""

    scores: FloatArray
    seconds: float


class _FirstFold:
    """Criteria of candidates on the first fold, and which of them are far behind the best."""

    def __init__(self, values: dict[str, float], n_counted: int) -> None:
        self.values = values
        self.ranking = sorted(values, key=lambda name: -values[name])
        # Half a pair more found, and half a pair more missed: odds of 0 and 1 are finite, and what few pairs decide is not far.
        self._odds = {name: (n_counted * value + 0.5) / (n_counted * (1.0 - value) + 0.5) for name, value in values.items()}

    def is_far_behind(self, name: str) -> bool:
        """Return whether the odds of a candidate are many times lower than those of the best."""
        return FAR_BEHIND * self._odds[name] < self._odds[self.ranking[0]]

    def sentence(self, name: str) -> str:
        """Return how far behind a candidate is."""
        best = self.ranking[0]
        return f"far behind on the first fold: {_told_apart(self.values[name], self.values[best])} of {best}"


class Comparison:
    """Candidates, and their scores of held-out pairs.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Samples that candidates are compared on.
    source : PairSource
        Their pairs.
    units : ndarray of shape (n_samples,)
        What folds never split.
    representation : transformer or None
        Representation that is fitted inside each fold.
    candidates : mapping of str to Candidate
        What is compared.
    target : float
        False positive rate to compare at.
    budget : Budget
        Seconds that may be taken.
    n_all : int
        Number of samples that what is chosen will be fitted on.
    seed : int
        Random seed of the candidates.
    n_jobs : int or None
        Number of parallel jobs.
    compute : callable, optional
        Runs calls elsewhere, see `SampleStore.compute`: candidates are then compared at the same time, unless seconds are
        counted.
    kept : str, default=SAMPLES
        What the units are, for a sentence: `SAMPLES`, `CLASSES`, `LINKED_CLASSES` or `GROUPS`.
    groups : ndarray of shape (n_samples,), optional
        Group of each sample, for the candidates that take groups.
    """

    def __init__(
        self,
        samples: NDArray[Any],
        source: PairSource,
        units: Units,
        representation: Any,
        candidates: dict[str, presets.Candidate],
        target: float,
        budget: Budget,
        n_all: int,
        seed: int,
        n_jobs: int | None,
        compute: Callable[[str, Callable[[Any], Any], Sequence[Any]], list[Any]] | None = None,
        kept: str = SAMPLES,
        groups: Units | None = None,
    ) -> None:
        self.kept, self.groups = kept, groups
        self.samples, self.source, self.units = samples, source, units
        self.representation = representation
        self.candidates, self.target = candidates, target
        self.budget, self.n_all = budget, n_all
        self.seed, self.n_jobs = seed, n_jobs
        self.folds: list[Fold] = []
        self.scores: dict[str, list[FloatArray]] = {}
        self.seconds: dict[str, float] = {}
        self.costs: dict[str, Cost] = {}
        self.skipped: dict[str, str] = {}
        self._not_worth: dict[str, str] = {}
        self.n_known = len(samples)
        self._compute = None if budget.is_limited else compute
        self._known: dict[tuple[str, int], FloatArray | ValueError] = {}
        self._coming: dict[tuple[str, int], Future[_Timed]] = {}
        self._choosers: dict[int, Chooser] = {}
        self._longest_trial = self._promised = 0.0

    def repeat(self, number: int, rng: np.random.Generator) -> Iterator[str]:
        """Make another partition into folds, and score its held-out pairs by each candidate; yield its name when it is done.

        Candidates that cannot be fitted, for which there is no time, or that are far behind on the first fold are skipped. A
        later partition is for those only that may still turn out to be the best, and skipped as a whole if the budget does not
        allow it.
        """
        try:
            yield from self._repeat(number, rng)
        finally:  # if it ends too early, nobody waits for the rest
            for future in self._coming.values():
                future.cancel()
            self._coming.clear()

    def _repeat(self, number: int, rng: np.random.Generator) -> Iterator[str]:
        folds = make_folds(self.source, self.units, number, rng)
        if number and not self._allows_repeat(len(folds)):
            return
        if not folds:
            raise ValueError(self._no_folds())
        held_out = [self._held_out(fold) for fold in folds]
        self.n_known = max(len(fold.samples) for fold in held_out)
        if number:
            contenders = self.chooser().contenders()
            self._prefetch(contenders, held_out)
            for name in contenders:
                self._add(name, held_out)
                yield name
        else:
            left = dict(self.candidates)
            while left:  # what comes after another candidate waits until it is known how far that one is behind
                names = [name for name, candidate in left.items() if candidate.after not in left]
                tried = self._worth_trying(names, folds[0])
                self._prefetch(tried, held_out[:1])
                for name in names:
                    del left[name]
                    if name in tried and self._allows(name, held_out):
                        self._add(name, held_out[:1])
                    yield name
            self._give_up(folds[0])
            self._prefetch(list(self.scores), held_out[1:])
            for name in self.candidates:
                if name in self.scores:
                    self._add(name, held_out[1:])
                yield name
        self.folds += folds
        if not self.scores:
            name, reason = next(iter(self.skipped.items()))
            raise ValueError(f"no candidate can be fitted on a fold of these data; {name}: {reason}")

    def chooser(self, n_repeats: int | None = None) -> Chooser:
        """Return what chooses among the candidates that were scored in all partitions, or in so many of them."""
        n_folds = sum(n_repeats is None or fold.repeat < n_repeats for fold in self.folds)
        if n_folds not in self._choosers:
            complete = {name: found for name, found in self.scores.items() if len(found) >= n_folds}
            folds = [
                HeldOutScores(fold.repeat, fold.pairs, {name: found[k] for name, found in complete.items()})
                for k, fold in enumerate(self.folds[:n_folds])
            ]
            self._choosers[n_folds] = Chooser(folds, self.fpr)
        return self._choosers[n_folds]

    @property
    def fpr(self) -> float:
        """False positive rate near the target that the folds of the first partition can measure."""
        return measurable_rate(self.target, self.n_different)

    @property
    def n_different(self) -> int:
        """Number of different pairs of the smallest fold of the first partition."""
        return min(len(fold.pairs) - fold.pairs.n_same for fold in self.folds if fold.repeat == 0)

    @property
    def n_repeats(self) -> int:
        """Number of partitions into folds so far."""
        return 1 + max((fold.repeat for fold in self.folds), default=-1)

    @property
    def max_repeats(self) -> int:
        """Number of partitions that are made at most: fewer for many samples, which one partition ranks well."""
        return int(np.clip(MAX_SAMPLES // len(self.samples), 1, MAX_REPEATS))

    def last_fit(self, name: str) -> float:
        """Return the seconds that a candidate will take to be fitted on all samples; zero without a budget."""
        return self.costs[name].of_last_fit(self.source, self.n_all / self.n_known) if name in self.costs else 0.0

    def expected_seconds(self, rng: np.random.Generator) -> float:
        """Return how many seconds the comparison and the last fits will take, from a small trial of each candidate."""
        folds = make_folds(self.source, self.units, 0, rng)
        if not folds:
            raise ValueError(self._no_folds())
        fold = self._held_out(folds[0])
        self.n_known = len(fold.samples)
        for name, candidate in self.candidates.items():
            with contextlib.suppress(ValueError):  # one that cannot be fitted is skipped
                self.costs[name] = measure_cost(candidate.make, fold.samples, fold.known, self.n_jobs, fold.groups)
        if not self.costs:
            return 0.0
        once = len(folds) * sum(cost.of_fold(fold.known) for cost in self.costs.values())
        last = float(np.mean([self.last_fit(name) for name in self.costs]))
        share = USUAL_SHARE if _tells(folds[0]) else 1.0
        members = min(USUAL_MEMBERS, len(self.costs))
        return (share + USUAL_CONTENDERS * (self.max_repeats - 1)) * once + members * last

    def value_on_one_fold(self, name: str, rng: np.random.Generator) -> tuple[float, float]:
        """Return the criterion of one candidate on a single fold, and the false positive rate; raise if there is none."""
        folds = make_folds(self.source, self.units, 0, rng)
        if not folds:
            raise ValueError(self._no_folds())
        fold = self._held_out(folds[0])
        self.n_known = len(fold.samples)
        same = folds[0].pairs.same
        rate = measurable_rate(self.target, int(np.count_nonzero(~same)))
        return criterion(roc_curve(self._scores(name, fold).scores, same), rate), rate

    @property
    def n_doublings(self) -> float:
        """How often twice as many units as models of a fold are fitted on there are in all samples."""
        n_units = len(np.unique(self.units))
        seen = float(np.mean([len(np.unique(self.units[fold.seen])) for fold in self.folds if fold.repeat == 0]))
        return float(np.log2(n_units / seen * self.n_all / len(self.samples)))

    def with_half(self, name: str, rng: np.random.Generator) -> list[Roc] | None:
        """Return the ROC curves of a candidate in the folds of the first partition, fitted on half of their units.

        None if that is impossible: for given pairs, too few units, or if the budget does not allow it.
        """
        first = [fold for fold in self.folds if fold.repeat == 0]
        if self.source.labels is None or not self.budget.allows(0.5 * self.seconds[name] + self.last_fit(name)):
            return None
        halves = [self._half(fold, rng) for fold in first]
        if any(self.source.restrict(half.seen) is None for half in halves):
            return None
        held_out = [self._held_out(half) for half in halves]
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore", UserWarning)  # what is said of half of the samples need not be true of all
            self._prefetch([name], held_out)
            return [roc_curve(self._scores(name, fold).scores, fold.fold.pairs.same) for fold in held_out]
        return None  # there is too little to fit on

    def _held_out(self, fold: Fold) -> HeldOut:
        """Return a fold with its samples."""
        return HeldOut(self.samples, self.source, fold, self.representation, self.groups)

    def _half(self, fold: Fold, rng: np.random.Generator) -> Fold:
        """Return a fold of which half of the units are seen."""
        seen = rng.permutation(np.unique(self.units[fold.seen]))
        return Fold(fold.repeat, np.isin(self.units, seen[: len(seen) // 2]), fold.pairs)

    def model(self, name: str, size: presets.Size) -> Any:
        """Return an unfitted candidate."""
        return presets.seeded(self.candidates[name].make(size), self.seed, self.n_jobs)

    def _no_folds(self) -> str:
        """Return the sentence that there are too few data for folds."""
        n_units, parts = int(self.units.max()) + 1, "so that both parts have same and different pairs"
        if self.kept == CLASSES:
            return (
                f"entire classes are left out of folds, but the {n_units} of these data cannot be divided {parts}; give more "
                "of them, or set open_set=False."
            )
        if self.kept == LINKED_CLASSES:
            assert self.source.labels is not None
            return (
                f"entire classes are left out of folds, but groups link the {len(np.unique(self.source.labels))} of these data "
                f"to {count(n_units, 'unit')} that cannot be divided {parts}; give groups that share fewer classes, or leave "
                "groups out."
            )
        if self.kept == GROUPS:
            return (
                f"entire groups are left out of folds, but the {count(n_units, 'group')} of these data cannot be divided "
                f"{parts}; give more groups, or leave them out."
            )
        more = "pairs" if self.source.labels is None else "samples per class"
        return (
            f"the data cannot be divided into folds {parts}; give more {more}, or fit a single model, such as "
            "GaussianSimilarity."
        )

    def _add(self, name: str, held_out: list[HeldOut]) -> None:
        """Add the scores of a candidate in some folds; one that cannot be fitted on such data is skipped."""
        found = self.scores.setdefault(name, [])
        self.seconds.setdefault(name, 0.0)
        try:
            for fold in held_out:
                scores, seconds = self._scores(name, fold)
                found.append(scores)
                self.seconds[name] += seconds
        except ValueError as error:
            self.skipped[name] = _reason(error)
            del self.scores[name]

    def _scores(self, name: str, fold: HeldOut) -> _Timed:
        """Return the scores of a candidate in a fold, which may be known already; raise if it cannot be fitted."""
        if (name, id(fold)) in self._coming:
            return self._coming.pop((name, id(fold))).result()
        found = self._known.pop((name, id(fold)), None)
        if isinstance(found, ValueError):
            raise found
        if found is not None:
            return _Timed(found, 0.0)
        return _timed_score(fold, self.model(name, presets.SMALL.for_samples(self.n_known)))

    def _prefetch(self, names: Sequence[str], held_out: list[HeldOut]) -> None:
        """Find the scores of several candidates in some folds at the same time: elsewhere, or in threads.

        If there is a budget, seconds are counted, and each candidate has all threads for itself.
        """
        # The longest first, so that no thread is left alone with them at the end. Those not tried yet are listed by simplicity.
        places = {name: place for place, name in enumerate(names)}
        longest_first = sorted(names, key=lambda name: (self.seconds.get(name, 0.0), places[name]), reverse=True)
        parts = [(number, name) for name in longest_first for number in range(len(held_out))]
        n_threads = effective_n_jobs(self.n_jobs)
        if self.budget.is_limited or len(parts) < (n_threads if self._compute is None else 1):
            return
        size = presets.SMALL.for_samples(self.n_known)
        models = {name: presets.seeded(self.candidates[name].make(size), self.seed, None) for name in names}
        if self._compute is None:
            if n_threads > 1:
                keys = [(name, id(held_out[number])) for number, name in parts]
                work = [partial(_timed_score, held_out[number], clone(models[name])) for number, name in parts]
                self._coming |= dict(zip(keys, submitted(work, n_threads), strict=True))
            return
        found = self._compute(
            "compare-candidate", partial(_score_fold, held_out), [(number, models[name]) for number, name in parts]
        )
        self._known |= {(name, id(held_out[number])): scores for (number, name), scores in zip(parts, found, strict=True)}

    def _worth_trying(self, names: Sequence[str], fold: Fold) -> list[str]:
        """Return the candidates that come after none that is far behind on the first fold, and skip the others."""
        found = self._on_first_fold(fold)
        worth = []
        for name in names:
            before = self.candidates[name].after
            if before in self._not_worth:
                self._not_worth[name] = self._not_worth[before]
            elif found is not None and before in found.values and found.is_far_behind(before):
                self._not_worth[name] = f"{before} is {found.sentence(before)}"
            else:
                worth.append(name)
        self.skipped |= self._not_worth
        return worth

    def _give_up(self, fold: Fold) -> None:
        """Skip the candidates that are so much worse than the best on the first fold that the others are not worth the time."""
        found = self._on_first_fold(fold)
        if found is None:
            return
        kinds = {name: type(self.candidates[name].make(presets.SMALL)) for name in found.ranking}
        for place, name in enumerate(found.ranking):
            if found.is_far_behind(name):
                self.skipped[name] = found.sentence(name)
            elif place >= MAX_KEPT and sum(kinds[better] is kinds[name] for better in found.ranking[:place]) >= MAX_OF_CLASS:
                last = found.ranking[MAX_KEPT - 1]
                own, of_last = found.values[name], found.values[last]
                behind = "behind" if own < of_last else "no better than"
                figures = f"{_told_apart(own, of_last)} of {last}"
                self.skipped[name] = f"{behind} {MAX_KEPT} others on the first fold: {figures}"
            else:
                continue
            del self.scores[name]

    def _on_first_fold(self, fold: Fold) -> _FirstFold | None:
        """Return the criteria of the candidates on the first fold; None if it has too few same pairs to tell."""
        if not _tells(fold):
            return None
        same = fold.pairs.same
        rate = measurable_rate(self.target, int(np.count_nonzero(~same)))
        values = {name: criterion(roc_curve(found[0], same), rate) for name, found in self.scores.items()}
        return _FirstFold(values, _n_counted(fold.pairs))

    def _allows(self, name: str, held_out: list[HeldOut]) -> bool:
        """Return whether a candidate can be compared and then fitted within the budget; the first always can."""
        if not self.budget.is_limited:
            return True
        if not self.scores:
            return True
        if not self.budget.allows(self._longest_trial):
            self.skipped[name] = NO_TIME
            return False
        fold, start = held_out[0], time.perf_counter()
        try:
            make = self.candidates[name].make
            self.costs[name] = measure_cost(make, fold.samples, fold.known, self.n_jobs, fold.groups)
        except ValueError as error:
            self.skipped[name] = _reason(error)
            return False
        self._longest_trial = max(self._longest_trial, time.perf_counter() - start)
        of_fold = self.costs[name].of_fold(fold.known)
        if self.budget.allows(self._promised + len(held_out) * of_fold + self.last_fit(name)):
            self._promised += (len(held_out) - 1) * of_fold  # to be taken after the first folds of all candidates
            return True
        self.skipped[name] = NO_TIME
        return False

    def _allows_repeat(self, n_folds: int) -> bool:
        """Return whether there are folds, and time for the contenders again and for the last fits."""
        again = sum(self.seconds[name] for name in self.chooser().contenders()) / self.n_repeats
        last = max((self.last_fit(name) for name in self.scores), default=0.0)
        return n_folds > 0 and self.budget.allows(again + last)


def _reason(error: ValueError) -> str:
    """Return why a candidate cannot be fitted, without advice on a representation that nobody chose."""
    return "requires labels" if isinstance(error, LabelsRequiredError) else str(error)


def _told_apart(value: float, other: float) -> str:
    """Return two figures with three decimals, or with as many as it takes to tell them apart.

    Examples
    --------
    >>> _told_apart(0.25, 0.5), _told_apart(0.9997, 1.0)
    ('0.250, and 0.500', '0.9997, and 1.0000')
    """
    printed = [(f"{value:.{digits}f}", f"{other:.{digits}f}") for digits in range(3, 17)]
    return ", and ".join(next((pair for pair in printed if pair[0] != pair[1]), printed[0]))


def _tells(fold: Fold) -> bool:
    """Return whether a fold has enough same pairs, and enough of them that count, to give up candidates after it."""
    return fold.pairs.n_same >= MIN_SAME and _n_counted(fold.pairs) >= MIN_COUNTED


def _n_counted(pairs: IndexPairs) -> int:
    """Return the number of same pairs, of which an identity counts for at most as many as it has samples.

    Pairs that share a sample err together. An identity is here what same pairs link.

    Examples
    --------
    >>> four, first, second = np.triu_indices(4, 1), [4, 6], [5, 7]  # an identity of four samples, and two of two samples
    >>> _n_counted(IndexPairs(np.r_[four[0], first], np.r_[four[1], second], np.ones(8, dtype=bool)))
    6
    """
    same = pairs.same_pairs()
    numbers = np.unique(np.concatenate([same.first, same.second]), return_inverse=True)[1]
    first, second = np.split(numbers, 2)
    n = int(numbers.max(initial=-1)) + 1
    identities = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n, n)), directed=False)[1]
    return int(np.minimum(np.bincount(identities), np.bincount(identities[first])).sum())


def _timed_score(fold: HeldOut, model: Any) -> _Timed:
    start = time.perf_counter()
    scores = fold.score(model)
    return _Timed(scores, time.perf_counter() - start)


def _score_fold(held_out: list[HeldOut], part: tuple[int, Any]) -> FloatArray:
    number, model = part
    return held_out[number].score(model)
