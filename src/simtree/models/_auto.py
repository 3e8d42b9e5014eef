"""AutoSimilarity: AutoML for similarity learning, by a stack of similarities or the best of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.matrices import has_missing
from simtree._utils.progress import CallbackSupportMixin, reported, tell, with_callbacks
from simtree._utils.threads import one_blas_thread
from simtree._utils.validation import check_integer, check_n_jobs, check_real, count
from simtree.evaluation import Estimate
from simtree.io._fields import MAX_COUNT, Fields
from simtree.io._registry import MODEL, known_names, register
from simtree.metrics import Roc
from simtree.models import _presets as presets
from simtree.models._base import LeafValues, Similarity
from simtree.models._choice import Chooser, judge, mean_tpr
from simtree.models._comparison import CLASSES, GROUPS, LINKED_CLASSES, SAMPLES, Comparison
from simtree.models._empty_columns import empty_columns, named_already
from simtree.models._learning_curve import LearningCurve
from simtree.models._open_set import is_open_set
from simtree.models._persistence import model_from_state
from simtree.models._represented import RepresentedMixin
from simtree.models._selection import Units, criterion, fit_arguments, fold_units, groups_for, restricted, some_rows
from simtree.models._shapley import TypicalPair, explain_any
from simtree.models._stack import StackedSimilarity
from simtree.models._table_members import Contents, for_table
from simtree.models._table_report import what_was_done
from simtree.models._timing import Budget
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import check_training, check_two
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import PairSource
from simtree.pairs._store import mapped
from simtree.pairs._table import FROM_DTYPE
from simtree.representation._applied import fit_representation
from simtree.representation._base import quiet_classifiers
from simtree.representation._columns import ColumnRepresentation, takes_missing
from simtree.trees._explanation import Explanation, with_words

# Given pairs that candidates are compared on, if there are more.
MAX_GIVEN_PAIRS = 200_000
# Level of the interval of the reported figure.
CONFIDENCE = 0.95
# More candidates in a model file are treated as damage.
MAX_CANDIDATES = 1 << 10
COLUMNS = ("weight", "criterion", "criterion_error", "tpr", "auc", "seconds")
FIGURES = ("tpr", "auc")


def _best_explains(self: AutoSimilarity) -> bool:
    best: Any = self.best_estimator_
    return self._typical is not None or callable(best.explain_pair)  # a stack raises the sentence why it cannot


@dataclass(frozen=True, eq=False)
class _Data:
    """What is given to fit: samples, their pairs, the group of each sample or None, and random numbers."""

    samples: NDArray[Any]
    source: PairSource
    groups: Units | None
    entropy: NDArray[np.int64]


@register(MODEL)
class AutoSimilarity(CallbackSupportMixin, RepresentedMixin, Similarity):
    """AutoML for similarity learning: a stack of similarities or the best of them, without hyperparameters to tune.

    The candidates are forests on several representations, a Gaussian model, an ensemble and distance baselines. They are
    compared on a subsample of the data by scores of held-out pairs. Those that add to each other are combined in a
    `StackedSimilarity`, if that is better than the best of them on folds that its weights have not seen. What is chosen is
    fitted on all samples at a larger size.

    Parameters
    ----------
    target_fpr : float, default=1e-3
        Candidates are compared by their mean TPR at false positive rates around this one. If there are too few pairs to
        measure it, the smallest measurable rate is used, ``fpr_``, with a warning.
    time_budget : float or None, default=None
        Time in seconds that `fit` may take. Candidates that take too long are skipped (``skipped_``), so that the choice
        depends on the speed of the machine. The simplest candidate is always tried.
    open_set : bool or "auto", default="auto"
        Whether the model will be used on unseen identities, as in verification: cross-validation then leaves out entire
        classes. ``"auto"`` is True if there are more than 10 classes, with a warning. It also decides how evidence of pairs of
        values of a category is cross-fitted, see `SimilarityForest`.
    representation : transformer, optional
        Transformer applied to the samples first, see `SimilarityTree`. It is fitted inside the folds.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Columns that are categories, see `SimilarityTree`. Trees compare them; other candidates are given one column per value,
        or the rarity of values if there are many. Missing numbers are filled in where a candidate does not take them.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for folds, pairs and models.
    verbose : int, default=0
        Set to 1 to show progress, the kinds of columns of a table, and what was done to them.

    Attributes
    ----------
    results_ : dict of ndarrays
        Results of all candidates, best first: ``name``; ``weight``, the share in what was chosen (zero if it is not a member);
        ``criterion`` and ``criterion_error``, the mean TPR around ``fpr_`` over folds and its standard error; ``tpr`` at
        ``fpr_``, ``auc`` and ``seconds``. Use ``pandas.DataFrame(auto.results_)`` to show it as a table. The highest of these
        values is optimistic, because it is the highest; ``performance_`` is not.
    performance_ : dict
        Metrics of what was chosen: ``tpr`` at ``fpr_`` and ``auc``, each with an interval that holds, with a confidence of
        95 %, what a test on a third as many new identities (samples of a closed set, or groups) will give. For each fold the
        choice is made anew without it. What is lost since models of folds see fewer samples is estimated by fits on half of
        them, and added. Empty if there is one fold only.
    best_name_ : str
        Name of what was chosen: a candidate, or ``"stack of ..."``.
    best_estimator_ : Similarity
        What was chosen, fitted on all samples.
    skipped_ : dict
        Candidates that were not compared, with the reason.
    open_set_ : bool
        Whether entire classes were left out in cross-validation; True for given pairs.
    fpr_ : float
        False positive rate around which candidates were compared: ``target_fpr``, or a larger rate if there are too few pairs.
    n_repeats_ : int
        Number of partitions into folds; there are several if the ranking of the candidates is uncertain.
    representation_ : transformer or None
        The fitted representation.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it is that of ``best_estimator_``; choose it on
        held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read, see `SimilarityTree`; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import AutoSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> auto = AutoSimilarity(target_fpr=0.1, time_budget=0.0, open_set=False, random_state=0).fit(X, y)
    >>> auto.best_name_  # with a time budget of zero only the first candidate is tried
    'euclidean'
    """

    preprocessor = None
    best_estimator_: Similarity
    _typical: TypicalPair | None = None

    def __init__(
        self,
        *,
        target_fpr: float = 1e-3,
        time_budget: float | None = None,
        open_set: bool | str = "auto",
        representation: Any = None,
        categorical_features: ArrayLike | str | None = FROM_DTYPE,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.target_fpr = target_fpr
        self.time_budget = time_budget
        self.open_set = open_set
        self.representation = representation
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
    ) -> Self:
        """Choose a similarity by cross-validation, and fit it on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair. Samples that pairs link are kept in one fold where
            that is possible; otherwise pairs of two folds are left out.
        groups : array-like of shape (n_samples,) or (n_pairs, 2), optional
            Samples of a group, such as a speaker or a site, are never in different folds. Candidates that take groups are
            given them, see `SimilarityForest.fit`.
        never_pair : array-like of shape (n_samples,), optional
            Samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            self.__dict__.pop("best_estimator_", None)  # of an earlier fit
            budget = Budget(self.time_budget)
            samples, source = check_training(self, X, y, pairs, never_pair)
            codes = None if groups is None else encode_groups(groups, len(samples))
            given_samples = self._given_and_kept(samples)[0]
            self._set_contents(given_samples, source)
            names = getattr(self, "feature_names_in_", None) if self.columns_ is None else self.columns_.names
            empty_columns(given_samples, names)
            if self.columns_ is not None:
                tell(f"Columns: {self.columns_}.", verbose=self.verbose)
            data = _Data(given_samples, source, codes, check_random_state(self.random_state).randint(2**31, size=4))
            self.open_set_ = self._is_open(source)
            with one_blas_thread(), named_already():  # candidates are small, and compared at the same time
                comparison = self._compare(data, budget)
                chooser = comparison.chooser()
                members = self._affordable(chooser.members(chooser.all_folds), chooser, comparison)
                self._set_results(chooser, comparison, members, np.random.default_rng([*data.entropy, 1]))
            represented = self._fit_representation(samples, source)
            given: dict[str, Any] = {"X": represented, **fit_arguments(source)}
            if self.representation is None and self.columns_ is None:  # the original X, to keep the feature names
                given = {"X": X, "y": y, "pairs": pairs, "never_pair": never_pair}
            with named_already():
                self.best_estimator_ = self._fit_members(members, given, codes, chooser, comparison)
            self.threshold_ = self.best_estimator_.threshold_
            # Trees and stacks explain their scores by themselves.
            explains = hasattr(self.best_estimator_, "explain_pair")
            self._typical = None if explains else TypicalPair.of(samples, self.columns_)
            for sentence in what_was_done(self):
                tell(f"Done: {sentence}.", verbose=self.verbose)
            self._warn_of_rate(comparison)
            self._warn_of_open_set(data, chooser, comparison, members)
            del self._contents  # not part of what is fitted
        return self

    def _expected_seconds(self, X: ArrayLike, y: ArrayLike, never_pair: ArrayLike | None) -> float:
        """Return how many seconds `fit` will take, from small trials of the candidates."""
        samples, source = check_training(self, X, y, None, never_pair)
        samples = self._given_and_kept(samples)[0]
        self._set_contents(samples, source)
        self.open_set_ = self._is_open(source)
        data = _Data(samples, source, None, np.zeros(4, dtype=np.int64))
        comparison = self._comparison(data, self._candidates(source), Budget(None), self.open_set_, self.target_fpr)
        return comparison.expected_seconds(np.random.default_rng(0))

    def _is_open(self, source: PairSource) -> bool:
        """Return whether entire identities are left out of folds."""
        if source.labels is None:
            return True
        return is_open_set(_n_labels(source)) if self.open_set == "auto" else bool(self.open_set)

    def _compare(self, data: _Data, budget: Budget) -> Comparison:
        """Score held-out pairs by the candidates, in as many partitions into folds as the ranking needs."""
        candidates = self._candidates(data.source)
        comparison = self._comparison(data, candidates, budget, self.open_set_, self.target_fpr)
        rng = np.random.default_rng(data.entropy)

        def steps() -> Any:
            for repeat in range(comparison.max_repeats):
                before = comparison.n_repeats
                yield from comparison.repeat(repeat, rng)
                if comparison.n_repeats == before or comparison.chooser().is_stable():
                    return

        n_steps = len(candidates) * (1 + comparison.max_repeats)  # the first fold of the first partition is for all of them
        with quiet_classifiers():  # once for all threads
            list(reported(steps(), self, n_steps=n_steps, what="comparing candidates", verbose=self.verbose))
        return comparison

    def _candidates(self, source: PairSource) -> dict[str, presets.Candidate]:
        """Return what is tried: those for known classes only if the classes are known, and those for unseen ones otherwise."""
        closed = source.labels is not None and not self.open_set_
        return {
            name: candidate._replace(make=self._for_table(candidate.make))
            for name, candidate in presets.CANDIDATES.items()
            if candidate.is_for(closed_set=closed)
        }

    def _set_contents(self, samples: NDArray[Any], source: PairSource) -> None:
        """Find what candidates must take: holes and categories, as the representation leaves them."""
        own, n_codes = self._own_representation(), self._n_codes()
        if own is not None and (n_codes or has_missing(samples)):
            samples = fit_representation(own, samples, source, allow_missing=True)[1]
        n_values = self.columns_.n_values if self.columns_ is not None and n_codes else ()
        self._contents = Contents.of(samples, n_values)

    def _for_table(self, make: Callable[[presets.Size], Similarity]) -> Callable[[presets.Size], Similarity]:
        """Return a maker of a candidate for the table."""
        contents = self._contents
        if contents.is_plain:
            return make
        # Folds of given pairs are those of an open set in any case; categories are learned as the user says.
        closed_set = not (self.open_set_ and self.open_set)
        return lambda size: for_table(make(size), contents, closed_set=closed_set)

    def _takes_missing(self) -> bool:
        # Candidates are made for what is found in fit; what was chosen decides afterwards.
        if takes_missing(self.representation) or not hasattr(self, "best_estimator_"):
            return True
        return self.best_estimator_._takes_missing()

    def _n_given(self) -> int:
        return self._n_read()

    def _given_and_kept(self, samples: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return samples as candidates take them: they read categories again, which are missing where there is NaN."""
        if not self._n_codes():
            return super()._given_and_kept(samples)
        assert self.columns_ is not None
        return mapped(samples, self.columns_.with_holes), 0

    def _takes_represented_missing(self) -> bool:
        return True  # each candidate is made for what there is

    def _own_representation(self) -> Any:
        own, n_codes = super()._own_representation(), self._n_codes()
        if own is None or not n_codes:
            return own
        n_numbers = self._n_read() - n_codes
        parts = [
            ("numbers", own, list(range(n_numbers))),
            ("codes", "passthrough", list(range(n_numbers, n_numbers + n_codes))),
        ]
        return ColumnRepresentation(parts)

    def _comparison(
        self, data: _Data, candidates: dict[str, presets.Candidate], budget: Budget, open_set: bool, target: float
    ) -> Comparison:
        """Return the comparison of candidates on a subsample, for an open or a closed set."""
        rng = np.random.default_rng(data.entropy)
        samples, source, groups = data.samples, data.source, data.groups
        units = fold_units(source, len(samples), open_set, groups)
        if source.labels is None:
            source = source.subsample(MAX_GIVEN_PAIRS, rng)
        else:
            rows = some_rows(source, units, rng)
            samples, source = samples[rows], restricted(source, rows)
            units = np.unique(units[rows], return_inverse=True)[1]
            groups = None if groups is None else groups[rows]
        settings: dict[str, Any] = {"n_all": len(data.samples), "seed": int(data.entropy[0]), "n_jobs": self.n_jobs}
        settings |= {"compute": getattr(data.samples, "compute", None), "groups": groups}
        if source.labels is None or not open_set:
            settings["kept"] = SAMPLES if groups is None else GROUPS
        else:
            settings["kept"] = CLASSES if groups is None else LINKED_CLASSES
        return Comparison(samples, source, units, self._own_representation(), candidates, target, budget, **settings)

    def _affordable(self, members: tuple[str, ...], chooser: Chooser, comparison: Comparison) -> tuple[str, ...]:
        """Return the members if there is time to fit them, otherwise the best candidate for which there is."""
        if comparison.budget.allows(sum(comparison.last_fit(name) for name in members)):
            return members
        ranking = chooser.ranking(chooser.all_folds)
        affordable = [name for name in ranking if comparison.budget.allows(comparison.last_fit(name))]
        return ((affordable or [min(ranking, key=comparison.last_fit)])[0],)

    def _fit_members(
        self,
        members: tuple[str, ...],
        given: dict[str, Any],
        groups: Units | None,
        chooser: Chooser,
        comparison: Comparison,
    ) -> Similarity:
        """Return what was chosen, fitted on all samples; a stack has its weights from the held-out pairs."""
        size = presets.LARGE.for_samples(comparison.n_all)
        models = [(name, comparison.model(name, size)) for name in members]
        given = {name: value for name, value in given.items() if value is not None}
        if len(models) == 1:
            only: Any = models[0][1]
            fitted: Similarity = only.fit(**given, **groups_for(only, groups))
            return fitted
        return StackedSimilarity(models, open_set=self.open_set_, n_jobs=self.n_jobs)._fit_with(chooser, given, groups)

    def _set_results(
        self, chooser: Chooser, comparison: Comparison, members: tuple[str, ...], rng: np.random.Generator
    ) -> None:
        """Set the table of candidates, and the figures of what was chosen."""
        folds, first = chooser.all_folds, comparison.chooser(1)
        shares = chooser.shares(members, folds) if len(members) > 1 else np.ones(1)
        weights = dict.fromkeys(first.names, 0.0) | dict(zip(members, shares.tolist(), strict=True))
        criteria, rocs = first.criteria | chooser.criteria, first.rocs | chooser.rocs
        order = sorted(weights, key=lambda name: (-weights[name], -float(np.mean(criteria[name]))))
        self.fpr_ = chooser.fpr
        self.results_ = {
            "name": np.array(order),
            "weight": np.array([weights[name] for name in order]),
            "criterion": np.array([np.mean(criteria[name]) for name in order]),
            "criterion_error": np.array([_standard_error(criteria[name]) for name in order]),
            "tpr": np.array([mean_tpr(rocs[name], self.fpr_) for name in order]),
            "auc": np.array([np.mean([roc.auc() for roc in rocs[name]]) for name in order]),
            "seconds": np.array([comparison.seconds[name] for name in order]),
        }
        self.skipped_ = dict(comparison.skipped)
        self.n_repeats_ = comparison.n_repeats
        self.best_name_ = members[0] if len(members) == 1 else _stack_name(len(members))
        # Of the first partition alone: later ones have only those candidates that did well in it.
        nested = first.nested_scores()
        self.performance_ = {}
        if nested is not None:
            in_folds = judge(nested, first.folds, comparison.units, self.fpr_, CONFIDENCE)
            main = members[int(np.argmax(shares))]
            self.performance_ = self._with_all_samples(in_folds, first.rocs[main], main, comparison, rng)

    def _with_all_samples(
        self,
        in_folds: dict[str, Estimate],
        rocs: Sequence[Roc],
        main: str,
        comparison: Comparison,
        rng: np.random.Generator,
    ) -> dict[str, Estimate]:
        """Return the figures of models that are fitted on all samples, from those of folds and the gain of the main member."""
        half = comparison.with_half(main, rng)
        if half is None:
            return in_folds
        figures: dict[str, Callable[[Roc], float]] = {"tpr": lambda roc: float(roc.at(self.fpr_)), "auc": Roc.auc}
        return {
            name: LearningCurve.of([of(roc) for roc in half], [of(roc) for roc in rocs]).carried(
                in_folds[name], comparison.n_doublings
            )
            for name, of in figures.items()
        }

    def _warn_of_rate(self, comparison: Comparison) -> None:
        if self.fpr_ > self.target_fpr:
            warnings.warn(
                f"target_fpr={self.target_fpr:g} cannot be measured: a fold has only "
                f"{count(comparison.n_different, 'different pair')}; candidates are compared around fpr_={self.fpr_:.2g}; "
                "give more identities or samples, or a larger target_fpr.",
                UserWarning,
                stacklevel=4,
            )

    def _warn_of_open_set(self, data: _Data, chooser: Chooser, comparison: Comparison, members: tuple[str, ...]) -> None:
        """Warn if it was not said whether the set is open, with the figures of both cases where they can be measured."""
        if self.open_set != "auto" or data.source.labels is None:
            return
        figures = "" if comparison.budget.is_limited else self._both_figures(data, chooser, comparison, members)
        kind = "an open" if self.open_set_ else "a closed"
        warnings.warn(
            f"open_set='auto' takes the {_n_labels(data.source)} labels for {kind} set{figures}; set open_set=True if the "
            "model will meet other identities, or open_set=False if it will not.",
            UserWarning,
            stacklevel=4,
        )

    def _both_figures(self, data: _Data, chooser: Chooser, comparison: Comparison, members: tuple[str, ...]) -> str:
        """Return the figures of the main member for an open and for a closed set, if both can be measured.

        One fold of one candidate tells whether they differ much; more folds and members would take as long as the search.
        """
        shares = chooser.shares(members, chooser.all_folds) if len(members) > 1 else np.ones(1)
        main = members[int(np.argmax(shares))]
        other = self._comparison(data, {main: comparison.candidates[main]}, comparison.budget, not self.open_set_, self.fpr_)
        try:
            with named_already():
                of_other, fpr = other.value_on_one_fold(main, np.random.default_rng(data.entropy))
        except ValueError:  # the set cannot be divided in this way
            return ""
        figures = float(np.mean([criterion(roc, fpr) for roc in chooser.rocs[main]])), of_other
        unseen, known = figures if self.open_set_ else figures[::-1]
        return (
            f" (mean TPR around FPR {fpr:.2g} of {main}: {unseen:.2f} on identities left out of training, {known:.2f} on other "
            "samples of known identities)"
        )

    def _check_parameters(self) -> None:
        check_real("target_fpr", self.target_fpr, 0.0, 1.0, open_low=True)
        if self.time_budget is not None:
            check_real("time_budget", self.time_budget, 0.0, np.inf)
        if self.open_set not in (True, False, "auto"):
            raise ValueError(f"open_set={self.open_set!r} is unknown; give True, False or 'auto'.")
        check_n_jobs(self.n_jobs)
        check_integer("verbose", self.verbose, 0)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {
            **self._search_state(),
            "representation": self._get_representation_state(),
            "best_estimator": self.best_estimator_._get_state(),
            **({} if self._typical is None else {"typical_pair": self._typical._get_state()}),
        }

    def _set_fitted_state(self, fields: Fields) -> None:
        results = fields.part("results")
        names = results.strings("name", MAX_CANDIDATES)
        self.results_ = {"name": np.array(names), **{column: results.numbers(column, len(names)) for column in COLUMNS}}
        figures = fields.part("performance")
        self.performance_ = {name: Estimate(*figures.numbers(name, 3).tolist()) for name in FIGURES if figures.has(name)}
        self.skipped_ = dict(zip(*(fields.strings(name, MAX_CANDIDATES) for name in ("skipped", "reasons")), strict=False))
        self.best_name_ = fields.string("best_name", [*names, _stack_name(int(np.count_nonzero(self.results_["weight"])))])
        self.open_set_ = fields.flag("open_set")
        self.fpr_ = fields.number("fpr", 0.0)
        self.n_repeats_ = fields.integer("n_repeats", 1, MAX_COUNT)
        n_features = self._set_representation_state(fields)
        known = [name for name in known_names(MODEL) if name != type(self).__name__]
        self.best_estimator_ = model_from_state(fields.part("best_estimator"), tuple(known))
        if self.best_estimator_.n_features_in_ != n_features:
            raise fields.fail("best_estimator", "must have the number of features that the representation makes")
        if fields.has("typical_pair"):  # not in files of before
            self._typical = TypicalPair._from_state(fields.part("typical_pair"), self._n_read())

    def _summary(self) -> dict[str, Any]:
        return {**self._search_state(), "best_estimator": self.best_estimator_.to_dict()}

    def _search_state(self) -> dict[str, Any]:
        """Return the state of the search: candidates, results and choice."""
        return {
            "results": {name: column.tolist() for name, column in self.results_.items()},
            "performance": {name: list(figure) for name, figure in self.performance_.items()},
            "skipped": list(self.skipped_),
            "reasons": list(self.skipped_.values()),
            "best_name": self.best_name_,
            "open_set": self.open_set_,
            "fpr": self.fpr_,
            "n_repeats": self.n_repeats_,
        }

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        return self.best_estimator_._read_and_prepare(self._represent(samples))

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        return self.best_estimator_._score_pairs(pairs)

    def _leaf_values(self) -> LeafValues | None:
        return self.best_estimator_._leaf_values()

    def _test_cost(self) -> float:
        return self.best_estimator_._test_cost()

    def _max_score(self) -> float:
        return self.best_estimator_._max_score()

    @available_if(_best_explains)
    def explain_pair(self, x: ArrayLike, x2: ArrayLike, **options: Any) -> Explanation:
        """Explain the score of the pair (x, x2) by the contribution of each feature.

        Trees and stacks that were chosen explain it as they do by themselves. The score of any other model is explained as
        that of a stack of such models, see `StackedSimilarity.explain_pair`.

        Parameters
        ----------
        x, x2 : array-like of shape (n_features,)
            The two samples.
        **options : dict
            Options of `SimilarityForest.explain_pair`.

        Returns
        -------
        Explanation
            Contribution of each feature; with a representation, of each of its output features.
        """
        check_is_fitted(self)
        return self._explain_rows(check_two(self, x, x2), **options)

    def _explain_rows(self, samples: NDArray[Any], **options: Any) -> Explanation:
        """Explain the score of two rows that are checked, and read from a table, already."""
        if self._typical is not None:
            return explain_any(self, self._typical, samples, **options)
        if self.columns_ is not None and self.representation_ is None:
            options = {"feature_names": self.columns_.names, **options}
        best: Any = self.best_estimator_
        found: Explanation = best._explain_rows(best._read(self._represent(samples)), **options)
        return with_words(found, self.columns_, samples) if self.columns_ is not None and self._n_codes() else found


def _stack_name(n_members: int) -> str:
    return f"stack of {n_members} similarities"


def _n_labels(source: PairSource) -> int:
    assert source.labels is not None
    return int(source.labels.max()) + 1


def _standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean; NaN of one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
