"""CohortNormalization: scores relative to those with a cohort, which makes them comparable between samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.matrices import MAX_FLOAT, filled
from simtree._utils.threads import in_threads
from simtree._utils.validation import check_choice, check_integer, check_n_jobs, count
from simtree.io._fields import Fields, moderate
from simtree.io._registry import MODEL, register
from simtree.metrics import youden_threshold
from simtree.models._base import Similarity, check_similarity
from simtree.models._persistence import model_from_state
from simtree.models._selection import fit_arguments, groups_for
from simtree.models._table_members import reading_again, unread
from simtree.pairs._codes import FIRST_HASHED, MISSING
from simtree.pairs._coordinates import SamplePairs, occurring
from simtree.pairs._inputs import check_training, check_two, n_columns
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import PairSource
from simtree.pairs._store import mapped
from simtree.trees._explanation import Explanation, with_words

Floats = NDArray[np.float64]

COHORTS = ("averaged", "synthetic", "samples")
# An averaged vector is the mean of samples of this many identities, so that it is like none of them.
N_AVERAGED = 5
# Number of training rows that a cohort is drawn from, at most; and how many of them, per vector, neighbours are searched in.
MAX_ROWS, SEARCHED = 50_000, 4
# A spread of cohort scores is at least this share of the typical one: where scores saturate, all of them may be equal.
MIN_SPREAD = 0.1
# Scores are limited to this size.
MAX_SCORE = 1000.0
# Smaller spreads are rounding.
TINY = 1e-200
# Number of scores with the cohort computed at a time.
BLOCK = 1 << 18


def _without_private(rows: Floats, n_codes: int) -> Floats:
    """Return rows whose last columns, codes of categories, lack values that only one identity may have; changed in place."""
    codes = rows[:, rows.shape[1] - n_codes :]
    codes[codes >= FIRST_HASHED] = MISSING
    return rows


def _base_has(name: str) -> Callable[[CohortNormalization], bool]:
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


@register(MODEL)
class CohortNormalization(Similarity):
    """A similarity whose scores are normalised by scores with a cohort: adaptive symmetric score normalisation.

    Some samples score high with everybody, others with nobody, so that no threshold fits all of them. Each sample is therefore
    compared with a cohort, and the score s of a pair becomes the mean of (s - m) / d over its two samples, where m and d are
    mean and standard deviation of the scores of that sample with the ``n_nearest`` vectors of the cohort that score highest.
    This is known as adaptive s-norm in speaker verification. It often raises the TPR at low false positive rates of cosines,
    distances and forests for unseen identities. It does little for a `GaussianSimilarity`, and harms scores that saturate.

    Parameters
    ----------
    estimator : similarity
        The similarity; a clone of it is fitted.
    cohort : {"averaged", "synthetic", "samples"}, default="averaged"
        What the cohort consists of. ``"averaged"`` are means of samples of five identities that are similar to one another
        (of five samples if there are fewer identities), moved away from their centre so that they vary as samples do.
        ``"synthetic"`` are draws from a Gaussian distribution with the mean and covariance of the training samples.
        ``"samples"`` are training samples as they are: model files then hold samples of people.
    n_cohort : int, default=600
        Number of vectors in the cohort, at most the number of distinct training samples.
    n_nearest : int, default=100
        Number of vectors of the cohort that a sample is compared with: those with the highest scores, at most a third.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers; see `SimilarityTree`. It
        is not needed in the estimator.
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring; the estimator uses its own ``n_jobs`` for fitting. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the cohort.

    Attributes
    ----------
    estimator_ : similarity
        The fitted similarity.
    cohort_ : ndarray of shape (n_cohort, n_features)
        The cohort.
    spread_ : float
        Median standard deviation over training samples; a standard deviation below a tenth of it is replaced by that tenth.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on the training pairs;
        choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read into a matrix, which its estimator reads again; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    Notes
    -----
    Scores lie between -1000 and 1000. Each sample that is scored is compared with the entire cohort first, also in `top_k`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from simtree import CohortNormalization, DistanceSimilarity
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CohortNormalization(DistanceSimilarity(), n_cohort=100, random_state=0).fit(X[:500], y[:500])
    >>> model.pair_score([[1000, 1008], [1000, 1001]], X).round(1)  # two ones; a one and a four
    array([ 3.4, -4.5])
    """

    estimator_: Similarity
    cohort_: Floats
    spread_: float
    _prepared_cohort: NDArray[Any]

    #: Whether each mean of an averaged cohort is one of so many identities; of so many samples if there are fewer.
    _of_identities = True

    def __init__(
        self,
        estimator: Similarity,
        *,
        cohort: str = "averaged",
        n_cohort: int = 600,
        n_nearest: int = 100,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.cohort = cohort
        self.n_cohort = n_cohort
        self.n_nearest = n_nearest
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
    ) -> Self:
        """Fit the similarity, the cohort and the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples. Of pairs, samples that same pairs connect are taken for one identity.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        groups : array-like of shape (n_samples,) or (n_pairs, 2), optional
            Group of each sample, for an estimator that takes groups, see `SimilarityForest.fit`.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            codes = None if groups is None else encode_groups(groups, len(samples))
            given: dict[str, Any] = {"X": X, "y": y, "pairs": pairs}
            if self.columns_ is not None:
                given = {"X": self._given(samples), **fit_arguments(source)}
            elif source.labels is not None:
                given["never_pair"] = never_pair
            elif self.preprocessor is not None:  # otherwise pass the original X, which has the feature names
                index = source.sample(None, np.random.default_rng(0), shuffle=False)
                given = {"X": samples, "y": index.same, "pairs": np.column_stack([index.first, index.second])}
            estimator: Any = reading_again(self.estimator, self.columns_, "estimator")
            self.estimator_ = estimator.fit(**given, **groups_for(estimator, codes))
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
            rows, identities = _drawn_rows(samples, source, SEARCHED * int(self.n_cohort), rng)
            rows = filled(rows)
            self._set_cohort(self._make_cohort(rows, identities, rng))
            self.spread_ = 0.0
            spread = float(np.median(self._statistics(self.estimator_._read_and_prepare(self._given(rows)))[:, 1]))
            self.spread_ = spread if spread >= TINY else 1.0  # a constant score
            self.threshold_ = youden_threshold(self._roc_of(self._prepared(samples), source))
        return self

    def _takes_missing(self) -> bool:
        return bool(getattr(self.estimator, "_takes_missing", bool)())

    def _table_categories(self) -> Any:
        return self.estimator._table_categories()

    def _given(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return checked samples as the estimator takes them: it reads the categories of a table again."""
        return samples if self.columns_ is None else mapped(samples, self.columns_.with_holes)

    def _make_cohort(self, rows: Floats, identities: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return the cohort, made of distinct samples; as many as possible of the first ones are of different identities."""
        n, n_codes = min(int(self.n_cohort), len(rows)), 0 if self.columns_ is None else len(self.columns_.categories)
        self._of_identities = self.cohort != "averaged" or _has_enough(identities)
        if self.cohort == "samples":
            return _without_private(rows[:n].copy(), n_codes)
        if len(rows) < N_AVERAGED:
            raise ValueError(
                f"X has {count(len(rows), 'distinct sample')}, but cohort={self.cohort!r} requires at least {N_AVERAGED}; "
                "give more samples."
            )
        if self.cohort == "synthetic":
            mean = rows.mean(axis=0)
            # Gaussian weights of the deviations: a draw with their covariance, without computing it.
            weights = rng.normal(scale=len(rows) ** -0.5, size=(n, len(rows)))
            found = np.asarray(mean + weights @ (rows - mean))
            for column in range(rows.shape[1] - n_codes, rows.shape[1]):
                found[:, column] = rng.choice(rows[:, column], n)
        else:
            # Not pairwise_score, which would warn that rows have no feature names.
            prepared = self.estimator_._read_and_prepare(self._given(rows))
            scores = self.estimator_._pairwise_score(prepared[:n], prepared)
            found = neighbour_means(rows, identities, scores, n_codes)
            n_numbers = rows.shape[1] - n_codes
            found[:, :n_numbers] = spread_like(found[:, :n_numbers], rows[:, :n_numbers])
        return _without_private(found, n_codes)

    def _set_cohort(self, cohort: Floats) -> None:
        """Set the cohort and what follows from it."""
        self.cohort_ = cohort
        self._prepared_cohort = self.estimator_._read_and_prepare(self._given(cohort))

    def _check_parameters(self) -> None:
        check_similarity(self.estimator, "estimator", fitted=False)
        check_choice("cohort", self.cohort, COHORTS)
        check_integer("n_cohort", self.n_cohort, 2)
        check_integer("n_nearest", self.n_nearest, 2)
        check_n_jobs(self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        state = {"estimator": self.estimator_._get_state(), "cohort": moderate(self.cohort_), "spread": self.spread_}
        return state if self._of_identities else {**state, "of_identities": False}  # as files of before have no such entry

    @classmethod
    def _given_parameters(cls, fields: Fields) -> dict[str, Any]:
        """Return the fitted similarity as ``estimator``, of which `_set_fitted_state` makes a clone."""
        return {"estimator": model_from_state(fields.part("estimator"))}

    def _set_fitted_state(self, fields: Fields) -> None:
        self.estimator_, self.estimator = self.estimator, unread(clone(self.estimator), self.columns_)
        if self.estimator_.n_features_in_ != n_columns(self):
            raise fields.fail("estimator", f"must be for samples with {count(n_columns(self), 'feature')}")
        cohort = fields.moderate("cohort", (None, n_columns(self)))
        if not len(cohort):
            raise fields.fail("cohort", "must not be empty")
        try:
            self._set_cohort(cohort)
        except ValueError as error:
            raise fields.fail("cohort", f"does not suit the estimator: {error}") from None
        self.spread_ = fields.number("spread", TINY, MAX_FLOAT)
        self._of_identities = fields.flag("of_identities") if fields.has("of_identities") else True

    def _summary(self) -> dict[str, Any]:
        return {"cohort": self._cohort_sentence(), "n_cohort": len(self.cohort_), "estimator": self.estimator_.to_dict()}

    def _cohort_sentence(self) -> str:
        """Return what the cohort consists of, and whether a file of the model holds samples."""
        averaged = f"samples of {N_AVERAGED} identities each" if self._of_identities else f"{N_AVERAGED} samples each"
        return {
            "averaged": f"{count(len(self.cohort_), 'mean')} of {averaged}; no training sample",
            "synthetic": f"{count(len(self.cohort_), 'draw')} from a Gaussian distribution; no training sample",
            "samples": f"{count(len(self.cohort_), 'training sample')} as given: this model holds samples",
        }[self.cohort]

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return the prepared samples of the estimator, with mean and inverse spread of cohort scores as last columns."""
        prepared = self.estimator_._read_and_prepare(self._given(samples))
        return np.hstack([prepared, self._statistics(prepared)]) if len(samples) else np.empty((0, prepared.shape[1] + 2))

    def _statistics(self, prepared: NDArray[Any]) -> Floats:
        """Return mean and spread of the highest cohort scores of each prepared sample."""
        n = len(self._prepared_cohort)
        n_nearest = min(int(self.n_nearest), max(2, n // 3), n)
        found = np.empty((len(prepared), 2))
        step = max(1, BLOCK // n)

        def fill(start: int) -> None:
            rows = np.arange(start, min(start + step, len(prepared)), dtype=np.int32)
            first, second = np.repeat(rows - np.int32(start), n), np.tile(np.arange(n, dtype=np.int32), len(rows))
            pairs = SamplePairs(np.ascontiguousarray(prepared[rows]), self._prepared_cohort, first, second)
            scores = self.estimator_._score_pairs(pairs).reshape(len(rows), n)
            # Sorted, so that the rounding of their sum does not depend on other rows.
            found[rows] = _moments(np.sort(scores, axis=1)[:, n - n_nearest :])

        in_threads(fill, range(0, len(prepared), step), self.n_jobs)
        found[:, 1] = np.maximum(found[:, 1], MIN_SPREAD * self.spread_)
        return found

    def _score_pairs(self, pairs: SamplePairs) -> Floats:
        # Restrict to the rows that occur, because a gallery may have many more rows than a block has pairs.
        (A, first), (B, second) = occurring(pairs.A, pairs.first), occurring(pairs.B, pairs.second)
        of_a, of_b = (np.ascontiguousarray(rows[:, :-2]) for rows in (A, B))
        scores = self.estimator_._score_pairs(SamplePairs(of_a, of_b, first, second))
        return 0.5 * (_relative(scores, A[first, -2:]) + _relative(scores, B[second, -2:]))

    def _max_score(self) -> float:
        return MAX_SCORE

    @available_if(_base_has("explain_pair"))
    def explain_pair(self, x: ArrayLike, x2: ArrayLike, **options: Any) -> Explanation:
        """Explain the score of the pair (x, x2), if the estimator can: its contributions, divided by the spread.

        Parameters
        ----------
        x, x2 : array-like of shape (n_features,)
            The two samples.
        **options : dict
            Options of `SimilarityForest.explain_pair`.

        Returns
        -------
        Explanation
            Contribution of each feature; the score of an average pair is relative to the cohort scores of this pair.
        """
        check_is_fitted(self)
        return self._explain_rows(check_two(self, x, x2), **options)

    def _explain_rows(self, samples: NDArray[Any], **options: Any) -> Explanation:
        """Explain the score of two rows that are checked already."""
        prepared = self._prepare(samples)
        base_model: Any = self.estimator_
        if self.columns_ is not None:
            options = {"feature_names": self.columns_.names, **options}
        explanation: Explanation = base_model._explain_rows(base_model._read(self._given(samples)), **options)
        first, second = np.array([[0], [1]], dtype=np.int32)
        statistics = prepared[:, -2:]
        base = float(np.mean([_relative(np.array([explanation.base]), row[None])[0] for row in statistics]))
        score = float(self._score_pairs(SamplePairs(prepared, prepared, first, second))[0])
        contributions = explanation.contributions * float(np.mean(1.0 / statistics[:, 1]))
        found = replace(explanation, contributions=contributions, base=base, score=score)
        if self.columns_ is None or list(found.feature_names) != list(options["feature_names"]):
            return found
        return with_words(found, self.columns_, samples)


def neighbour_means(rows: Floats, identities: NDArray[np.int64], scores: Floats, n_codes: int = 0) -> Floats:
    """Return, for each row of scores, the mean of a sample and of the samples of other identities that score highest with it.

    Samples of `N_AVERAGED` identities are averaged, one of each; of so many samples if there are fewer identities. Of the last
    columns, codes of categories, the most frequent one is taken.
    """
    if not _has_enough(identities):
        identities = np.arange(len(rows))
    means = np.empty((len(scores), rows.shape[1]))
    for number, of_one in enumerate(scores):
        order = np.argsort(-of_one, kind="stable")
        order = np.concatenate([[number], order[identities[order] != identities[number]]])
        _, first = np.unique(identities[order], return_index=True)
        averaged = rows[order[np.sort(first)[:N_AVERAGED]]]
        means[number] = averaged.mean(axis=0)
        for column in range(rows.shape[1] - n_codes, rows.shape[1]):
            codes, counts = np.unique(averaged[:, column], return_counts=True)
            means[number, column] = codes[counts.argmax()]
    return means


def _has_enough(identities: NDArray[np.int64]) -> bool:
    """Return whether there are as many identities as are averaged."""
    return bool(identities.max() + 1 >= N_AVERAGED)


def spread_like(means: Floats, rows: Floats) -> Floats:
    """Return means moved away from their centre, so that each feature varies as much as in the samples."""
    centre, spread = means.mean(axis=0), means.std(axis=0)
    factors = np.divide(rows.std(axis=0), spread, out=np.ones_like(spread), where=spread > 0.0)
    return np.asarray(centre + np.clip(factors, 1.0, N_AVERAGED**0.5) * (means - centre))


def _relative(scores: Floats, statistics: NDArray[Any]) -> Floats:
    """Return scores minus the mean of cohort scores, in units of their spread."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip((scores - statistics[:, 0]) / statistics[:, 1], -MAX_SCORE, MAX_SCORE))


def _moments(scores: Floats) -> Floats:
    """Return mean and standard deviation of each row, also where squares would overflow."""
    scores = np.clip(scores, -0.25 * MAX_FLOAT / scores.shape[1], 0.25 * MAX_FLOAT / scores.shape[1])
    mean = scores.mean(axis=1, keepdims=True)
    deviations = scores - mean
    largest = np.abs(deviations).max(axis=1, keepdims=True)
    relative = np.divide(deviations, largest, out=np.zeros_like(deviations), where=largest > 0.0)
    return np.hstack([mean, largest * np.sqrt((relative * relative).mean(axis=1, keepdims=True))])


def _drawn_rows(
    samples: NDArray[Any], source: PairSource, n_rows: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Return distinct training samples in random order and their identities, the next of each identity in turn."""
    if source.labels is not None:
        numbers = np.arange(len(samples))
        numbers = numbers if len(numbers) <= MAX_ROWS else np.sort(rng.choice(numbers, MAX_ROWS, replace=False))
        rows, first = np.unique(samples[numbers].astype(np.float64), axis=0, return_index=True)
        identities = np.unique(source.labels[numbers][first], return_inverse=True)[1]
    else:
        index = source.subsample(MAX_ROWS // 2, rng)
        numbers = np.concatenate([index.first, index.second])
        rows, inverse = np.unique(samples[numbers].astype(np.float64), axis=0, return_inverse=True)
        first_of, second_of = np.split(inverse.reshape(-1), 2)
        links = coo_matrix((np.ones(index.n_same), (first_of[index.same], second_of[index.same])), shape=(len(rows), len(rows)))
        identities = connected_components(links, directed=False)[1].astype(np.int64)
    order = rng.permutation(len(rows))
    order = order[np.argsort(identities[order], kind="stable")]
    sizes = np.bincount(identities)
    turn = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = rng.permutation(len(sizes))[identities[order]]
    chosen = order[np.lexsort((place, turn))][:n_rows]
    return rows[chosen], np.unique(identities[chosen], return_inverse=True)[1].astype(np.int64)
