"""Templates: the score of a probe with an identity, from its scores with the samples of that identity.

The samples of an identity are neighbours in a matrix of scores, one row per probe and one column per sample; ``starts`` has the
first column of each identity, and ``ages`` may say how much older than the probe each sample is. All fusions of scores are
called alike: the plain ones are here, and the learned one is in `simtree.evaluation._learned_fusion`. The closed form of a
Gaussian model is no function of scores; models compute it themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import check_choice, check_integer
from simtree.metrics import FloatArray

#: Fusions that take no more than the scores.
TOP_MEAN = "top_mean"
PLAIN_FUSIONS = ("max", "mean", TOP_MEAN)
LIKELIHOOD_RATIO, LEARNED = "likelihood_ratio", "learned"
FUSIONS = (*PLAIN_FUSIONS, LIKELIHOOD_RATIO, LEARNED)
#: Number of samples per identity that ``"top_mean"`` averages over.
N_BEST = 3

Starts = NDArray[np.int64]


class ScoreFusion(Protocol):
    """A function of the scores with the samples of an identity, and of their ages."""

    @property
    def name(self) -> str:
        """Name of the fusion."""

    @property
    def needs_time(self) -> bool:
        """Whether the ages of samples change the fused score."""

    def __call__(self, scores: FloatArray, starts: Starts, ages: FloatArray | None = None) -> FloatArray:
        """Return the score of each probe with each identity."""


@dataclass(frozen=True)
class Fusion:
    """How the scores with the samples of an identity become one score.

    Parameters
    ----------
    name : {"max", "mean", "top_mean"}
        The best score, the mean of all scores, or the mean of the ``n_best`` best ones.
    n_best : int, default=3
        Number of scores that ``"top_mean"`` averages over; all of them if an identity has fewer samples.

    Examples
    --------
    >>> scores = np.array([[1.0, 4.0, 3.0, 2.0, -5.0]])  # one probe; three samples of one identity, two of another
    >>> Fusion("max")(scores, np.array([0, 3])), Fusion("top_mean", n_best=2)(scores, np.array([0, 3]))
    (array([[4., 2.]]), array([[ 3.5, -1.5]]))
    """

    name: str
    n_best: int = N_BEST

    def __post_init__(self) -> None:
        check_choice("fusion", self.name, PLAIN_FUSIONS)
        check_integer("n_best", self.n_best, 1)

    @property
    def needs_time(self) -> bool:
        """False: all samples count alike, however old they are."""
        return False

    def __call__(self, scores: FloatArray, starts: Starts, ages: FloatArray | None = None) -> FloatArray:
        """Return the score of each probe with each identity.

        Parameters
        ----------
        scores : ndarray of shape (n_probes, n_samples)
            Scores, with the samples of an identity beside each other.
        starts : ndarray of shape (n_identities,)
            First column of each identity, increasing from 0; no identity is empty.
        ages : ndarray, optional
            Not used.

        Returns
        -------
        ndarray of shape (n_probes, n_identities)
            Fused scores. They depend on the scores of their own identity alone, bit for bit.
        """
        if len(starts) == scores.shape[1]:  # one sample each
            return scores
        if self.name == "max":
            return np.asarray(np.maximum.reduceat(scores, starts, axis=1))
        if self.name == TOP_MEAN:
            scores, starts = best_scores(scores, starts, self.n_best)
        return np.asarray(np.add.reduceat(scores, starts, axis=1) / sizes(starts, scores.shape[1]))


def sizes(starts: Starts, n_samples: int) -> NDArray[np.int64]:
    """Return the number of samples of each identity."""
    return np.diff(starts, append=n_samples)


def best_scores(scores: FloatArray, starts: Starts, n_best: int) -> tuple[FloatArray, Starts]:
    """Return the best scores of each probe with each identity, in decreasing order.

    Parameters
    ----------
    scores : ndarray of shape (n_probes, n_samples)
        Scores, with the samples of an identity beside each other.
    starts : ndarray of shape (n_identities,)
        First column of each identity.
    n_best : int
        Number of scores to keep per identity, at most.

    Returns
    -------
    best : ndarray of shape (n_probes, n_kept)
        The best scores.
    starts : ndarray of shape (n_identities,)
        First column of each identity in ``best``.
    """
    n_samples = scores.shape[1]
    of_each = sizes(starts, n_samples)
    codes = np.repeat(np.arange(len(starts)), of_each)
    order = np.argsort(-scores, axis=1, kind="stable")
    order = np.take_along_axis(order, np.argsort(codes[order], axis=1, kind="stable"), axis=1)
    kept: NDArray[Any] = np.arange(n_samples) - starts[codes] < n_best
    return np.take_along_axis(scores, order, axis=1)[:, kept], np.append(0, np.cumsum(np.minimum(of_each, n_best))[:-1])
