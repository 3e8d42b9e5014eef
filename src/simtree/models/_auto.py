"""AutoSimilarity: AutoML for similarity learning, by cross-validation among forests, ensembles and baselines."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.progress import CallbackSupportMixin, reported, with_callbacks
from simtree._utils.validation import check_integer, check_n_jobs, check_real, count
from simtree.growing._cross_validation import fold_numbers
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import Roc, tpr_at_fpr
from simtree.models import _presets as presets
from simtree.models._base import LeafValues, Similarity
from simtree.models._open_set import is_open_set
from simtree.models._persistence import model_from_state
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import check_training
from simtree.pairs._sampling import PairSampler
from simtree.trees._explanation import Explanation

N_FOLDS = 3
# If there are more samples than are compared, entire classes of an open set are dropped if there are more classes than this.
MAX_CLASSES_KEPT = 20
# Numbers of samples and pairs that candidates are compared on.
MAX_SEARCH_SAMPLES = 12_000
VALIDATION_PAIRS = 300_000
# A rate is used only if at least this many different pairs lie at that false positive rate.
MIN_DIFFERENT = 30
# More candidates in a model file are treated as damage; and the classes that may have been chosen.
MAX_CANDIDATES = 1 << 10
CHOSEN = ("DistanceSimilarity", "GaussianSimilarity", "SimilarityForest", "VotingSimilarity")


def _best_has(name: str) -> Callable[[AutoSimilarity], bool]:
    return lambda self: hasattr(self.best_estimator_, name)


@register(MODEL)
class AutoSimilarity(CallbackSupportMixin, Similarity):
    """AutoML for similarity learning: a similarity chosen by cross-validation, without hyperparameters to tune.

    The candidates are forests on several representations, a Gaussian model, an ensemble and distance baselines. They are
    compared on a subsample of the data by their TPR at one false positive rate, and the best is refitted on all samples at a
    larger size. A distance is chosen if no learned similarity is better, which can happen with few identities.

    Parameters
    ----------
    target_fpr : float, default=1e-3
        False positive rate at which candidates are compared. If there are too few pairs to measure it, the smallest
        measurable rate is used, ``fpr_``, with a warning.
    time_budget : float or None, default=None
        Time in seconds after which no further candidate is tried, not including the final fit. With a budget the choice
        depends on the speed of the machine.
    open_set : bool or "auto", default="auto"
        Whether the model will be used on unseen identities, as in verification: cross-validation then leaves out entire
        classes. ``"auto"`` is True if there are more than 10 classes.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for folds, pairs and models.
    verbose : int, default=0
        Set to 1 to show progress.

    Attributes
    ----------
    results_ : dict of ndarrays
        Results of all candidates, best first: ``name``, ``tpr`` and ``tpr_spread`` (mean and standard deviation over folds),
        ``auc`` and ``seconds``. Use ``pandas.DataFrame(auto.results_)`` to show it as a table. The first row is the maximum
        over all candidates, chosen on these same folds, and therefore optimistic: use held-out data to estimate performance.
    best_name_ : str
        Name of the best candidate.
    best_estimator_ : SimilarityForest, VotingSimilarity, GaussianSimilarity or DistanceSimilarity
        The best candidate, fitted on all samples.
    open_set_ : bool
        Whether entire classes were left out in cross-validation.
    fpr_ : float
        False positive rate at which candidates were compared: ``target_fpr``, or a larger rate if there are too few pairs.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it is that of ``best_estimator_``; choose it on
        held-out data with `calibrate_threshold`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import AutoSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> auto = AutoSimilarity(target_fpr=0.05, time_budget=0.0, random_state=0).fit(X, y)
    >>> auto.best_name_  # with a time budget of zero only the first candidate is tried
    'euclidean'
    """

    preprocessor = None
    best_estimator_: Similarity

    def __init__(
        self,
        *,
        target_fpr: float = 1e-3,
        time_budget: float | None = None,
        open_set: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.target_fpr = target_fpr
        self.time_budget = time_budget
        self.open_set = open_set
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, *, never_pair: ArrayLike | None = None) -> Self:
        """Choose a similarity by cross-validation, and fit it on all labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Label of each sample.
        never_pair : array-like of shape (n_samples,), optional
            Samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            if np.ndim(X) == 3:
                raise ValueError(
                    "X is an array of pairs, but AutoSimilarity makes folds of labelled samples; give samples and labels."
                )
            samples, source = check_training(self, X, y, None, never_pair)
            assert source.labels is not None
            sampler = PairSampler(source.labels, never_pair=source.never_pair)
            entropy = check_random_state(self.random_state).randint(2**31, size=4)
            rng = np.random.default_rng(entropy)
            n_classes = int(sampler.labels.max()) + 1
            self.open_set_ = is_open_set(n_classes) if self.open_set == "auto" else bool(self.open_set)
            rows = _some_rows(sampler.labels, self.open_set_, rng)
            self._compare(samples[rows], _sampler_of(sampler, rows), rng, int(entropy[0]))
            make, _ = presets.CANDIDATES[self.best_name_]
            best = _seeded(make(presets.LARGE), int(entropy[0]), self.n_jobs)
            # The original X and y, to keep the feature names.
            self.best_estimator_ = best.fit(X, y, never_pair=never_pair)
            self.threshold_ = best.threshold_
        return self

    def _compare(self, samples: NDArray[Any], source: PairSampler, rng: np.random.Generator, seed: int) -> None:
        """Evaluate the candidates on all folds; set ``results_``, ``best_name_`` and ``fpr_``."""
        folds = self._folds(samples, source, rng)
        self.fpr_ = self._measurable_fpr(min(len(pairs) - pairs.n_same for _, _, pairs in folds))
        start = time.perf_counter()
        names = [name for name, (_, closed) in presets.CANDIDATES.items() if not (closed and self.open_set_)]
        found: dict[str, list[tuple[Any, ...]]] = {}

        def tried() -> Any:
            for name in names:
                late = self.time_budget is not None and time.perf_counter() - start > self.time_budget
                if not late or not found:
                    began = time.perf_counter()
                    make, _ = presets.CANDIDATES[name]
                    rocs = [_held_out_roc(_seeded(make(presets.SMALL), seed, self.n_jobs), samples, *fold) for fold in folds]
                    found[name] = [(roc, time.perf_counter() - began) for roc in rocs]
                yield name

        list(reported(tried(), self, n_steps=len(names), what="comparing candidates", verbose=self.verbose))
        rates = {name: [tpr_at_fpr(roc, self.fpr_) for roc, *_ in fold] for name, fold in found.items()}
        # A stable sort: among ties the simpler candidate, which comes first.
        order = sorted(found, key=lambda name: -float(np.mean(rates[name])))
        self.results_ = {
            "name": np.array(order),
            "tpr": np.array([np.mean(rates[name]) for name in order]),
            "tpr_spread": np.array([np.std(rates[name], ddof=1) if len(folds) > 1 else np.nan for name in order]),
            "auc": np.array([np.mean([roc.auc() for roc, *_ in found[name]]) for name in order]),
            "seconds": np.array([found[name][-1][1] for name in order]),
        }
        self.best_name_ = order[0]

    def _measurable_fpr(self, n_different: int) -> float:
        """Return the rate to compare candidates at, if the smallest fold has this many different pairs."""
        if n_different <= MIN_DIFFERENT:
            raise ValueError(
                f"y leaves {count(n_different, 'different pair')} in a fold, but more than {MIN_DIFFERENT} are needed; "
                "give more classes or more samples per class, or fit a single model, such as GaussianSimilarity."
            )
        fpr = max(self.target_fpr, MIN_DIFFERENT / n_different)
        if fpr > self.target_fpr:
            warnings.warn(
                f"target_fpr={self.target_fpr:g} cannot be measured: a fold has only {count(n_different, 'different pair')}; "
                f"candidates are compared at fpr_={fpr:.2g}; give more identities or samples, or a larger target_fpr.",
                UserWarning,
                stacklevel=5,
            )
        return fpr

    def _folds(self, samples: NDArray[Any], source: PairSampler, rng: np.random.Generator) -> list[tuple[Any, ...]]:
        """Return, for each fold, a mask of the training samples, the source of pairs, and the held-out pairs to score."""
        units = source.labels if self.open_set_ else np.arange(len(samples))
        n_units = int(units.max()) + 1
        n_folds = min(N_FOLDS, n_units // 2) if self.open_set_ else N_FOLDS
        if n_folds < 2:
            raise ValueError(
                f"open_set=True leaves out entire classes, but y has only {n_units}; give more classes, or set open_set=False."
            )
        numbers = fold_numbers(units, source, n_folds, rng)
        folds = []
        for fold in range(n_folds):
            left_out = source.restrict(numbers == fold)
            if source.restrict(numbers != fold) is None or left_out is None:
                continue
            pairs = left_out.sample(VALIDATION_PAIRS, rng, positive_fraction=0.2, shuffle=False)
            folds.append((numbers != fold, source, pairs))
        if not folds:
            raise ValueError("no fold has both same and different pairs in training and test; give more samples per class.")
        return folds

    def _check_parameters(self) -> None:
        check_real("target_fpr", self.target_fpr, 0.0, 1.0, open_low=True)
        if self.time_budget is not None:
            check_real("time_budget", self.time_budget, 0.0, np.inf)
        if self.open_set not in (True, False, "auto"):
            raise ValueError(f"open_set={self.open_set!r} is unknown; give True, False or 'auto'.")
        check_n_jobs(self.n_jobs)
        check_integer("verbose", self.verbose, 0)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {**self._search_state(), "best_estimator": self.best_estimator_._get_state()}

    def _set_fitted_state(self, fields: Fields) -> None:
        results = fields.part("results")
        names = results.strings("name", MAX_CANDIDATES)
        self.results_ = {
            "name": np.array(names),
            **{column: results.numbers(column, len(names)) for column in ("tpr", "tpr_spread", "auc", "seconds")},
        }
        self.best_name_ = fields.string("best_name", names)
        self.open_set_ = fields.flag("open_set")
        self.fpr_ = fields.number("fpr", 0.0)
        self.best_estimator_ = model_from_state(fields.part("best_estimator"), CHOSEN)
        if self.best_estimator_.n_features_in_ != self.n_features_in_:
            raise fields.fail("best_estimator", "must have the same number of features as the model")

    def _summary(self) -> dict[str, Any]:
        return {**self._search_state(), "best_estimator": self.best_estimator_.to_dict()}

    def _search_state(self) -> dict[str, Any]:
        """Return the state of the search: candidates, results and choice."""
        return {
            "results": {name: column.tolist() for name, column in self.results_.items()},
            "best_name": self.best_name_,
            "open_set": self.open_set_,
            "fpr": self.fpr_,
        }

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        return self.best_estimator_._prepare(samples)

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        return self.best_estimator_._score_pairs(pairs)

    def _leaf_values(self) -> LeafValues | None:
        return self.best_estimator_._leaf_values()

    def _max_score(self) -> float:
        return self.best_estimator_._max_score()

    @available_if(_best_has("explain_pair"))
    def explain_pair(self, x: ArrayLike, x2: ArrayLike, **options: Any) -> Explanation:
        """Explain the score of the pair (x, x2), if a forest was chosen.

        Parameters
        ----------
        x, x2 : array-like of shape (n_features,)
            The two samples.
        **options : dict
            Options of `SimilarityForest.explain_pair`.

        Returns
        -------
        Explanation
            Contribution of each feature.
        """
        check_is_fitted(self)
        explanation: Explanation = self.best_estimator_.explain_pair(x, x2, **options)
        return explanation


def _seeded(candidate: Similarity, seed: int, n_jobs: int | None) -> Similarity:
    """Return a candidate with all its random seeds and numbers of parallel jobs set."""
    settings: dict[str, Any] = {}
    for name in candidate.get_params():
        if name == "random_state" or name.endswith("__random_state"):
            settings[name] = seed
        elif name == "n_jobs" or name.endswith("__n_jobs"):
            settings[name] = n_jobs
    seeded: Similarity = clone(candidate.set_params(**settings))
    return seeded


def _some_rows(classes: NDArray[np.int64], open_set: bool, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return rows to compare candidates on: entire classes of an open set if there are many, otherwise random samples."""
    n = len(classes)
    if n <= MAX_SEARCH_SAMPLES:
        return np.arange(n)
    n_classes = int(classes.max()) + 1
    if open_set and n_classes > MAX_CLASSES_KEPT:
        order = rng.permutation(n_classes)
        sizes = np.bincount(classes)[order]
        kept = order[: max(2 * N_FOLDS, int(np.searchsorted(np.cumsum(sizes), MAX_SEARCH_SAMPLES)))]
        return np.flatnonzero(np.isin(classes, kept))
    return np.sort(rng.choice(n, MAX_SEARCH_SAMPLES, replace=False))


def _sampler_of(source: PairSampler, rows: NDArray[np.int64]) -> PairSampler:
    """Return a sampler restricted to some samples, renumbered."""
    return PairSampler(source.labels[rows], never_pair=None if source.never_pair is None else source.never_pair[rows])


def _held_out_roc(
    candidate: Similarity, samples: NDArray[Any], seen: NDArray[np.bool_], source: PairSampler, pairs: Any
) -> Roc:
    """Return the ROC curve of a candidate on held-out pairs."""
    known = _sampler_of(source, np.flatnonzero(seen))
    candidate.fit(samples[seen], known.labels, never_pair=known.never_pair)
    numbers = np.column_stack([pairs.first, pairs.second])
    return candidate._roc_on(samples, pairs.same, numbers)
