"""Guarantees on the false positive rate of new identities, with and without an assumption about how unequal people are.

Identities are drawn independently; pairs are not, because they share identities. The observed rate U of n identities is a
U-statistic, and the promise "FPR <= target" is only given if U is so low that it would rarely be seen if the FPR were higher.

**Without any assumption** about the scores, U is the mean of the rates of matchings, each of which compares no identity twice
(n/2 independent comparisons if all identities are compared). By Hoeffding's convexity argument Chernoff's bound for that many
independent comparisons holds for U. Without any error it is about 6/n at 95 % confidence, which no method can improve: if one
identity in n is mistaken for everybody, the FPR is 2/n, and a third of all samples of n identities have none of them.

**Regular inequality.** The rate of a sample of identities is too low if the sample lacks those that are often mistaken. How
much too low it can be is learned where errors are frequent: identities are drawn with replacement, and q is a low quantile
of the rates of such draws, relative to the rate of all. Fewer identities at a higher rate stand for all identities at the
target: the number of mistaken pairs of identities, n^2 * FPR / 2, is the same in both cases, and q nearly so, whether people
differ normally or exponentially. So q is the minimum over some rates from the target upwards, with draws of
n * sqrt(target / rate) identities. Drawn identities are never more unequal than those at hand, so the promise takes twice the
margin on a logarithmic scale, U <= q^2 * target, a little less if identities are many (`FEW_PEOPLE`), and more if they are few
(`ENOUGH_PEOPLE`). It is refused if q is too low for so few identities (`MIN_PEOPLE`) or errors (`MIN_ERRORS`), and also if the
identities are that unequal in being *rarely* mistaken: heavy tails on one side warn of those on the other, which a sample may
lack.

A sample that happens to lack the worst identities has a q as high as that of regular people. But a population with heavy tails
shows them in its other identities, too, at a rate where nearly all of them have errors: in the kurtosis of how often each is
accepted with others (`simtree.evaluation._normal_scores.heavy_tails`). The exponent of q grows with it (`TAIL_SLOPE`).

The constants were chosen by the simulations of `make guarantees`, whose results are in docs/guarantees.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import rel_entr

from simtree.evaluation._identity_rates import MAX_RATE, Resampler
from simtree.evaluation._intervals import upper_bound
from simtree.evaluation._normal_scores import heavy_tails, nearest_level, normal_scores
from simtree.metrics import FloatArray

ASSUMPTIONS = ("regular", "none")
# A promise takes n identities whose resampled rates stay above MIN_PEOPLE / n of the observed one, and MIN_ERRORS accepted
# pairs of identities at the critical rate without heavy tails. With them it is lower, but must be at least MIN_SEEN pairs:
# less could not be told from zero.
MIN_PEOPLE, MIN_ERRORS, MIN_SEEN = 38.0, 1.5, 0.1
# Exponent of the resampled quantile in the critical rate: 2, because the identities that are not in the sample may be more
# unequal than those that are, or 1 + sqrt(FEW_PEOPLE / n) if that is lower; and how fast it grows with heavy tails.
FEW_PEOPLE, TAIL_SLOPE = 300.0, 2.0
# Kinds of people that are rarer than log(1 / alpha) / n may be absent from n identities. Without heavy tails the critical
# rate is at most n / (ENOUGH_PEOPLE * log(1 / alpha)) of the target (n / 1600 at 95 % confidence), to leave room for them.
ENOUGH_PEOPLE = 534.0
# Inequality is learned at the first N_LEARNED levels (by factors of 2) from the target upwards, up to MAX_RATE.
N_LEARNED = 4
N_DRAWS = 400
# Share of the error probability that the number of pairs of samples takes, if pairs of samples have equal weight.
SHARE_OF_SIZES = 0.1


def chernoff_bound(rate: ArrayLike, n_independent: float, confidence: float = 0.95) -> FloatArray:
    """Return the upper confidence bound of Chernoff and Hoeffding on the mean of a U-statistic with values in [0, 1].

    Parameters
    ----------
    rate : float or array
        Observed means.
    n_independent : float
        Number of independent comparisons in each matching.
    confidence : float, default=0.95
        Confidence level.

    Returns
    -------
    array
        Upper bounds; 1 without any comparison.

    Examples
    --------
    >>> chernoff_bound([0.0, 0.01], 500).round(4).tolist()
    [0.006, 0.0251]
    """
    observed = np.atleast_1d(np.asarray(rate, dtype=np.float64))
    limit = -math.log1p(-confidence) / max(n_independent, 1e-300)

    def bound(u: float) -> float:
        if divergence(u, 1.0 - 1e-15) <= limit:
            return 1.0
        return float(brentq(lambda mean: divergence(u, mean) - limit, u, 1.0 - 1e-15, xtol=1e-15))

    return np.array([bound(float(u)) for u in observed]).reshape(np.shape(rate))


def divergence(observed: float, mean: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli distributions with these means.

    Parameters
    ----------
    observed, mean : float
        Means, in [0, 1].

    Returns
    -------
    float
        The divergence, in nats.

    Examples
    --------
    >>> round(divergence(0.0, 0.01), 5)
    0.01005
    """
    return float(rel_entr(observed, mean) + rel_entr(1.0 - observed, 1.0 - mean))


@dataclass(frozen=True)
class FreeBound:
    """Upper confidence bound on the FPR without an assumption about how scores are distributed.

    Parameters
    ----------
    n_independent : int
        Number of independent pairs of identities in each matching.
    n_identity_pairs : int
        Number of all pairs of identities.
    binary : bool
        Whether all pairs are independent and each pair of identities is one pair of samples: then Clopper and Pearson's
        bound holds.
    mean_size : float
        Mean number of pairs of samples per pair of identities, relative to the maximum that is allowed; 1 if each pair of
        identities has the same weight.
    """

    n_independent: int
    n_identity_pairs: int
    binary: bool = False
    mean_size: float = 1.0

    def at(self, rate: float, confidence: float) -> float:
        """Return the bound at an observed rate."""
        if self.binary:
            return float(upper_bound(rate, self.n_identity_pairs, confidence))
        if self.mean_size == 1.0:
            return float(chernoff_bound(rate, self.n_independent, confidence))
        # Weighted by samples, the FPR is the mean number of accepted pairs over the mean number of pairs, each per pair of
        # identities and relative to its maximum: an upper bound on the first, and a lower bound on the second.
        of_sizes = SHARE_OF_SIZES * (1.0 - confidence)
        accepted = float(chernoff_bound(rate * self.mean_size, self.n_independent, confidence + of_sizes))
        compared = 1.0 - float(chernoff_bound(1.0 - self.mean_size, self.n_independent, 1.0 - of_sizes))
        return min(accepted / max(compared, 1e-300), 1.0)


class Inequality:
    """How much too low the rate of the identities at hand may be, learned by resampling them.

    Parameters
    ----------
    resampler : Resampler
        Pairs of identities at some levels.
    n_units : sequence of int
        Number of identities, and of sessions.
    confidence : float
        Confidence level.

    Attributes
    ----------
    rates : ndarray of shape (n_levels,)
        Rate of accepted pairs at each level.
    alpha : float
        Probability of an error, 1 - confidence.
    tails : float
        What heavy tails add to the exponent of the quantile.
    """

    def __init__(self, resampler: Resampler, n_units: Sequence[int], confidence: float) -> None:
        self._resampler, self._n_units, self.alpha = resampler, list(n_units), 1.0 - confidence
        self._n_draws = max(N_DRAWS, math.ceil(20.0 / self.alpha))
        self.rates, self._low_rates = resampler.rates(), resampler.rates(low=True)
        self.tails = TAIL_SLOPE * _heavy_tails(resampler, self.rates)
        self._found: dict[tuple[bool, int, float], float] = {}

    def quantile(self, target: float, *, low: bool = False) -> float:
        """Return q: the minimum over the rates from a target upwards of the lower quantile of resampled relative rates.

        Parameters
        ----------
        target : float
            The rate from which on inequality is learned.
        low : bool, default=False
            Whether to learn it from rejected pairs at low thresholds: how unequal identities are in being rarely mistaken.

        Returns
        -------
        float
            The quantile; 0 if there is no rate to learn from, and 1 for rejected pairs.
        """
        rates = self._low_rates if low else self.rates
        order = np.argsort(rates, kind="stable")
        above = order[(rates[order] >= target * (1.0 - 1e-9)) & (rates[order] <= MAX_RATE)][:N_LEARNED]
        # Scores with many ties may have no rate in this range; then the next lower rate is stricter.
        levels = above if len(above) else order[rates[order] < target][-1:]
        return min((self._at(int(level), target, low) for level in levels), default=float(low))

    def _at(self, level: int, target: float, low: bool) -> float:
        key = (low, level, target)
        if key not in self._found:
            fewer = math.sqrt(min(target / (self._low_rates if low else self.rates)[level], 1.0))
            n_drawn = tuple(max(round(n * fewer), 2) for n in self._n_units)
            drawn = self._resampler.relative_rates(level, n_drawn, self._n_draws, low=low)
            self._found[key] = float(np.quantile(drawn, self.alpha))
        return self._found[key]


def _heavy_tails(resampler: Resampler, rates: FloatArray) -> float:
    """Return the irregular kurtosis of identities, or of sessions if that is higher; 0 if they cannot be compared."""
    level = nearest_level(rates)
    if level is None:
        return 0.0
    n_pairs = len(resampler.compared)
    scores = (normal_scores(units, 2.0 * n_pairs / len(units)) for units in resampler.unit_rates(level))
    return max((heavy_tails(of_units) for of_units in scores if of_units is not None), default=0.0)


@dataclass(frozen=True)
class Criterion:
    """The critical rate of a promise: it is given at thresholds whose observed rate is at most this.

    Parameters
    ----------
    critical : float
        Highest observed rate at which the promise is given; negative if it is refused.
    quantile : float
        Learned quantile q of the relative rate; 1 without an assumption.
    n_needed : int
        Estimate of the number of identities that the promise takes.
    possible : float or None
        Lowest target that these identities support; None if none below `MAX_RATE` is.
    tails : float
        What heavy tails add to the exponent of the quantile; 0 if no identity stands out.
    """

    critical: float
    quantile: float
    n_needed: int
    possible: float | None
    tails: float = 0.0


def regular_criterion(inequality: Inequality, target: float, n_units: Sequence[int], n_identity_pairs: int) -> Criterion:
    """Return the critical rate if people differ regularly.

    Parameters
    ----------
    inequality : Inequality
        What was learned from the identities.
    target : float
        Maximum FPR.
    n_units : sequence of int
        Number of identities, and of sessions if there are any.
    n_identity_pairs : int
        Number of compared pairs of identities.

    Returns
    -------
    Criterion
        The critical rate, or what it would take.
    """
    fewest = min(n_units)

    def margin(n: float) -> float:
        return 1.0 + math.sqrt(FEW_PEOPLE / max(n, FEW_PEOPLE))

    def share(q: float, n: float, tails: float) -> float:
        regular = min(q ** margin(n), -n / (ENOUGH_PEOPLE * math.log(inequality.alpha)))
        return float(regular ** (1.0 + tails / margin(n)))

    def supported(rate: float, n: float) -> bool:
        q, expected = inequality.quantile(rate), n_identity_pairs * rate
        if (
            q * n < MIN_PEOPLE
            or share(q, n, 0.0) * expected < MIN_ERRORS
            or share(q, n, inequality.tails) * expected < MIN_SEEN
        ):
            return False
        q_low = inequality.quantile(rate, low=True)
        return q_low * n >= MIN_PEOPLE and q_low ** (margin(n) + inequality.tails) * expected >= MIN_ERRORS

    q = inequality.quantile(target)
    if supported(target, fewest):
        return Criterion(share(q, fewest, inequality.tails) * target, q, n_units[0], target, inequality.tails)
    # More identities at the target are like these identities at a higher rate; the needed number is read off there.
    higher = sorted(float(rate) for rate in inequality.rates if target < rate <= MAX_RATE)
    at = bisect_left(higher, True, key=lambda rate: supported(rate, fewest * math.sqrt(rate / target)))
    n_needed = n_units[0] * math.sqrt((higher[at] if at < len(higher) else MAX_RATE) / target)
    at = bisect_left(higher, True, key=lambda rate: supported(rate, fewest))
    possible = higher[at] if at < len(higher) else None
    return Criterion(-1.0, q, math.ceil(n_needed), possible, inequality.tails)


def free_criterion(free: FreeBound, target: float, confidence: float, n_identities: int) -> Criterion:
    """Return the critical rate without an assumption.

    Parameters
    ----------
    free : FreeBound
        The bound.
    target, confidence : float
        Maximum FPR, and confidence level.
    n_identities : int
        Number of identities.

    Returns
    -------
    Criterion
        The critical rate, or what it would take.
    """
    lowest = free.at(0.0, confidence)
    if lowest > target:
        needed = (
            n_identities * math.log1p(-lowest) / math.log1p(-target) if lowest < 1.0 else n_identities_for(target, confidence)
        )
        return Criterion(-1.0, 1.0, math.ceil(needed), lowest if lowest < MAX_RATE else None)
    critical = (
        target if free.at(target, confidence) <= target else brentq(lambda u: free.at(u, confidence) - target, 0.0, target)
    )
    return Criterion(float(critical), 1.0, n_identities, target)


def n_identities_for(max_fpr: float, confidence: float = 0.95, assume: str = "none") -> int:
    """Return the minimum number of identities that can support the claim FPR <= max_fpr, if all are compared.

    Parameters
    ----------
    max_fpr : float
        Maximum false positive rate, in (0, 1).
    confidence : float, default=0.95
        Confidence level, in (0, 1).
    assume : {"none", "regular"}, default="none"
        The assumption, see `Similarity.calibrate_threshold`. With ``"regular"`` this is the number for identities that do not
        differ at all; it takes more if they do.

    Returns
    -------
    int
        Number of identities.

    Examples
    --------
    >>> from simtree.evaluation import n_identities_for
    >>> n_identities_for(1e-2), n_identities_for(1e-3), n_identities_for(1e-3, assume="regular")
    (598, 5990, 56)
    """
    if assume == "none":
        return 2 * math.ceil(math.log1p(-confidence) / math.log1p(-max_fpr))
    return max(math.ceil(MIN_PEOPLE) + 1, math.ceil((1.0 + math.sqrt(1.0 + 8.0 * MIN_ERRORS / max_fpr)) / 2.0))
