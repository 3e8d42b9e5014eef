"""A fusion that is learned: how much more the best scores count than others, how fast samples age, and what their number means.

The scores s of the samples of an identity, with weights w that halve with age, become a generalised mean

    m = log(sum w exp(b s) / sum w) / b,

the weighted mean for b = 0, and nearly the best score if b is large. The fused score is a log-likelihood ratio: a slope of at
least zero times m, plus a constant and terms in the number of samples and in the age of the newest one. It increases with each
score. All parameters are chosen by the logistic loss on training identities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from simtree._utils.matrices import MAX_FLOAT
from simtree.evaluation._templates import LEARNED, Starts, sizes
from simtree.io._fields import Fields
from simtree.metrics import FloatArray

# Sharpness that is tried, per standard deviation of scores; and half-lives, as shares of the typical age of the oldest sample.
SHARPNESS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
HALF_LIVES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, math.inf)
# Number of times that both are chosen in turn.
N_ROUNDS = 3
# Quantile of the ages of the oldest samples that half-lives are shares of.
TYPICAL = 0.9
# Penalty on the squares of coefficients of standardised inputs: it keeps them finite where the identities are separated.
RIDGE = 1e-3
# Parameters beyond this are treated as damage in a model file.
MAX_PARAMETER = 1e100


@dataclass(frozen=True)
class LearnedFusion:
    """How scores with the samples of an identity become a log-likelihood ratio, learned from training identities.

    `Similarity.fit_fusion` makes one and stores it with the model; ``fusion="learned"`` then uses it.

    Parameters
    ----------
    sharpness : float
        How much more high scores count than low ones: 0 is the mean of scores.
    half_life : float
        Age at which a sample counts half as much as the newest one; infinite if old samples count as much as new ones.
    slope, intercept : float
        Slope of the fused score in the generalised mean, at least 0, and constant.
    of_number, of_age : float
        Slopes in the logarithm of the number of samples, and in log(1 + age of the newest sample / ``age_unit``).
    n_samples, newest : tuple of two floats
        Ranges of the number of samples and of the age of the newest one in the training identities; beyond them the fused score
        is that of the nearest value.
    age_unit : float
        Unit of ages.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.evaluation import LearnedFusion
    >>> fusion = LearnedFusion(sharpness=0.0, half_life=10.0, slope=2.0, intercept=-1.0)
    >>> fusion(np.array([[3.0, 0.0]]), np.array([0]), ages=np.array([[5.0, 15.0]]))  # one identity, with an old sample
    array([[3.]])
    """

    sharpness: float
    half_life: float
    slope: float
    intercept: float
    of_number: float = 0.0
    of_age: float = 0.0
    n_samples: tuple[float, float] = (1.0, 1.0)
    newest: tuple[float, float] = (0.0, 0.0)
    age_unit: float = 1.0

    @property
    def name(self) -> str:
        """Name of the fusion."""
        return LEARNED

    @property
    def needs_time(self) -> bool:
        """Whether the ages of samples change the fused score."""
        return math.isfinite(self.half_life) or self.of_age != 0.0

    def __call__(self, scores: FloatArray, starts: Starts, ages: FloatArray | None = None) -> FloatArray:
        """Return the log-likelihood ratio of each probe and identity.

        Parameters
        ----------
        scores : ndarray of shape (n_probes, n_samples)
            Scores, with the samples of an identity beside each other.
        starts : ndarray of shape (n_identities,)
            First column of each identity, increasing from 0; no identity is empty.
        ages : ndarray of shape (n_probes, n_samples), optional
            How much older than the probe each sample is; needed if `needs_time`.

        Returns
        -------
        ndarray of shape (n_probes, n_identities)
            Fused scores.
        """
        if ages is None and self.needs_time:
            raise ValueError("fusion='learned' depends on the age of samples; give time=, as when it was fitted.")
        mean = generalised_mean(scores, starts, ages, self.sharpness, self.half_life)
        number = np.clip(sizes(starts, scores.shape[1]), *self.n_samples)
        fused = self.slope * mean + (self.intercept + self.of_number * np.log(number))
        if ages is not None and self.of_age != 0.0:
            newest = np.clip(np.minimum.reduceat(ages, starts, axis=1), *self.newest)
            fused = fused + self.of_age * np.log1p(newest / self.age_unit)
        return np.asarray(fused)

    def max_rise(self, elapsed: float, youngest: float = -math.inf) -> float:
        """Return by how much time that passes can raise or lower the fused score with any identity, at most.

        Ages within an identity count relative to its newest sample, so that time changes only the term of the newest one, a
        multiple of log(1 + age / unit) within a range of ages: the younger an identity, the more it changes.

        Parameters
        ----------
        elapsed : float
            How much time passes, at least 0.
        youngest : float, default=-inf
            Age before, at least, of the newest sample of each identity.

        Returns
        -------
        float
            The greatest change, at least 0 and finite.

        Examples
        --------
        >>> fusion = LearnedFusion(0.0, math.inf, 1.0, 0.0, of_age=2.0, newest=(0.0, 9.0))
        >>> round(fusion.max_rise(1.0), 3), round(fusion.max_rise(1.0, youngest=4.0), 3), fusion.max_rise(1.0, youngest=9.0)
        (1.386, 0.365, 0.0)
        """
        low, high = self.newest
        start = min(max(youngest, low), high)
        end = min(start + elapsed, high)
        return abs(self.of_age) * (math.log1p(end / self.age_unit) - math.log1p(start / self.age_unit))

    @classmethod
    def fit(
        cls,
        scores: FloatArray,
        starts: Starts,
        same: NDArray[np.bool_],
        *,
        ages: FloatArray | None = None,
        weights: FloatArray | None = None,
    ) -> Self:
        """Fit a fusion to comparisons of probes with identities.

        Parameters
        ----------
        scores : ndarray of shape (n_scores,)
            Scores of all comparisons, one after the other.
        starts : ndarray of shape (n_comparisons,)
            First score of each comparison.
        same : ndarray of bool of shape (n_comparisons,)
            Whether the probe is of the identity.
        ages : ndarray of shape (n_scores,), optional
            How much older than the probe each sample is.
        weights : ndarray of shape (n_comparisons,), optional
            Weight of each comparison; same comparisons and different ones then get equal weight in total.

        Returns
        -------
        LearnedFusion
            The fusion with the lowest logistic loss.
        """
        flat, of_flat = scores[None, :], None if ages is None else ages[None, :]
        balanced = np.ones(len(same)) if weights is None else weights.astype(np.float64)
        for kind in (same, ~same):
            balanced[kind] *= 0.5 / balanced[kind].sum()
        number = sizes(starts, len(scores)).astype(np.float64)
        spread = float(scores.std())
        unit = spread if spread > 0.0 else 1.0
        columns, newest, age_unit, half_lives = [np.log(number)], np.zeros(len(starts)), 1.0, [math.inf]
        if ages is not None:
            newest = np.maximum(np.minimum.reduceat(ages, starts), 0.0)
            oldest = float(np.quantile(np.maximum.reduceat(ages, starts) - np.minimum.reduceat(ages, starts), TYPICAL))
            half_lives = [share * oldest for share in HALF_LIVES] if oldest > 0.0 else half_lives
            age_unit = float(np.median(newest)) or 1.0
            columns.append(np.log1p(newest / age_unit))
        tried: dict[tuple[float, float], tuple[float, list[float]]] = {}

        def loss(sharpness: float, half_life: float) -> float:
            if (sharpness, half_life) not in tried:
                mean = generalised_mean(flat, starts, of_flat, sharpness, half_life)[0]
                tried[sharpness, half_life] = _fit_logistic(np.column_stack([mean, *columns]), same, balanced)
            return tried[sharpness, half_life][0]

        several = bool((number > 1).any())
        sharpnesses = [step / unit for step in SHARPNESS] if several else [0.0]
        half_lives = half_lives if several else [math.inf]
        sharpness, half_life = sharpnesses[0], half_lives[-1]
        for _ in range(N_ROUNDS):  # one parameter after the other
            sharpness = min(sharpnesses, key=lambda value: loss(value, half_life))
            half_life = min(half_lives, key=lambda value: loss(sharpness, value))
        intercept, slope, *others = tried[sharpness, half_life][1]
        return cls(
            sharpness,
            half_life,
            slope,
            intercept,
            others[0],
            others[1] if ages is not None else 0.0,
            (float(number.min()), float(number.max())),
            (float(newest.min()), float(newest.max())),
            age_unit,
        )

    def _get_state(self) -> dict[str, Any]:
        """Return the fields that a model file stores."""
        return {**vars(self), "n_samples": list(self.n_samples), "newest": list(self.newest)}

    @classmethod
    def _from_state(cls, fields: Fields) -> Self:
        """Return the fusion that a model file stores."""

        def number(name: str, low: float = -MAX_PARAMETER) -> float:
            return fields.number(name, low, MAX_PARAMETER)

        def limits(name: str, low: float) -> tuple[float, float]:
            first, last = fields.numbers(name, 2).tolist()
            if not low <= first <= last <= MAX_FLOAT:
                raise fields.fail(name, f"must be two increasing numbers of at least {low:g}")
            return first, last

        return cls(
            number("sharpness", 0.0),
            fields.number("half_life", np.finfo(np.float64).tiny),
            number("slope", 0.0),
            number("intercept"),
            number("of_number"),
            number("of_age"),
            limits("n_samples", 1.0),
            limits("newest", 0.0),
            number("age_unit", np.finfo(np.float64).tiny),
        )


def generalised_mean(
    scores: FloatArray, starts: Starts, ages: FloatArray | None, sharpness: float, half_life: float
) -> FloatArray:
    """Return the generalised mean of the scores with each identity, with weights that halve with age.

    Parameters
    ----------
    scores : ndarray of shape (n_probes, n_samples)
        Scores, with the samples of an identity beside each other.
    starts : ndarray of shape (n_identities,)
        First column of each identity.
    ages : ndarray of shape (n_probes, n_samples) or None
        Age of each sample; only differences within an identity matter.
    sharpness, half_life : float
        As in `LearnedFusion`.

    Returns
    -------
    ndarray of shape (n_probes, n_identities)
        The means, between the lowest and the highest score.
    """
    n_of_each = sizes(starts, scores.shape[1])
    weights = None
    if ages is not None and math.isfinite(half_life):
        relative = ages - np.repeat(np.minimum.reduceat(ages, starts, axis=1), n_of_each, axis=1)
        weights = np.exp2(-relative / half_life)
    total = n_of_each if weights is None else np.add.reduceat(weights, starts, axis=1)
    if sharpness == 0.0:
        weighted = scores if weights is None else weights * scores
        return np.asarray(np.add.reduceat(weighted, starts, axis=1) / total)
    best = np.maximum.reduceat(scores, starts, axis=1)
    powers = np.exp(sharpness * (scores - np.repeat(best, n_of_each, axis=1)))
    summed = np.add.reduceat(powers if weights is None else weights * powers, starts, axis=1)
    # Very sharp means of old best scores underflow; the best score of all bounds what is lost.
    return np.asarray(best + np.log(np.maximum(summed / total, np.finfo(np.float64).tiny)) / sharpness)


def _fit_logistic(inputs: FloatArray, same: NDArray[np.bool_], weights: FloatArray) -> tuple[float, list[float]]:
    """Return the loss and the coefficients, the intercept first, of a logistic regression whose first slope is at least 0."""
    centre, spread = inputs.mean(axis=0), inputs.std(axis=0)
    varies = spread > 1e-9 * np.maximum(np.abs(centre), 1.0)
    scale = np.where(varies, spread, 1.0)
    standard = np.column_stack([np.ones(len(inputs)), np.where(varies, (inputs - centre) / scale, 0.0)])
    signs = np.where(same, 1.0, -1.0)
    penalty = np.append(0.0, np.full(inputs.shape[1], RIDGE))

    def loss(coefficients: FloatArray) -> tuple[float, FloatArray]:
        margins = signs * (standard @ coefficients)
        gradient = standard.T @ (-weights * signs * expit(-margins)) + 2.0 * penalty * coefficients
        return float(weights @ np.logaddexp(0.0, -margins) + penalty @ coefficients**2), gradient

    bounds = [(None, None), (0.0, None), *[(None, None)] * (inputs.shape[1] - 1)]
    result = minimize(loss, np.zeros(standard.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds)
    slopes = result.x[1:] / scale
    return float(result.fun), [
        float(result.x[0] - slopes @ np.where(varies, centre, 0.0)),
        *np.where(varies, slopes, 0.0).tolist(),
    ]
