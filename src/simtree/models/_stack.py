"""StackedSimilarity: calibrated similarities, combined with weights that are learned on pairs none of them has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import FloatArray, roc_curve, youden_threshold
from simtree.models._base import Similarity
from simtree.models._choice import Chooser, HeldOutScores
from simtree.models._ensemble import MAX_ESTIMATORS, Ensemble
from simtree.models._fusion import MAX_RATIO, Fusion, MonotoneMap
from simtree.models._selection import HeldOut, Units, fold_units, make_folds, measurable_rate
from simtree.models._shapley import TypicalPair, explain_any
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import check_training, check_two, n_columns
from simtree.pairs._labels import encode_groups
from simtree.trees._explanation import Explanation, with_words

# False positive rate that weights are fitted for, if there are enough pairs to measure it.
TARGET = 1e-3


def _explains(stack: StackedSimilarity) -> bool:
    if getattr(stack, "_typical", None) is None and not all(hasattr(member, "explain_pair") for member in stack.estimators_):
        raise AttributeError("this stack was saved before stacks could be explained; fit it again.")
    return True


@register(MODEL)
class StackedSimilarity(Ensemble):
    """A stack of similarities: a weighted sum of their scores, calibrated as log-likelihood ratios on held-out pairs.

    Members are fitted on folds and score the pairs of the fold left out. From these scores an increasing map is learned for
    each member, from its scores to log-likelihood ratios, and non-negative weights by logistic regression. Then the members are
    fitted on all samples.

    Parameters
    ----------
    estimators : list of (str, similarity) tuples
        Names and similarities; clones of these are fitted.
    open_set : bool, default=True
        Whether folds leave out entire identities, because the model will be used on unseen identities, or samples.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers; see `SimilarityTree`. It
        is not needed in the members.
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring; members use their own ``n_jobs`` for fitting. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed of folds and pairs; members have their own.

    Attributes
    ----------
    estimators_ : list of similarities
        The fitted members.
    weights_ : ndarray of shape (n_estimators,)
        Weights of the members' log-likelihood ratios, at least zero.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on held-out pairs; choose
        it with a guarantee by `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read into a matrix, which its members read again; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    See Also
    --------
    AutoSimilarity : Choose the members, too.
    VotingSimilarity : Add scores with given weights, without folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, GaussianSimilarity, StackedSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("distance", DistanceSimilarity(metric="euclidean")), ("gaussian", GaussianSimilarity())]
    >>> stack = StackedSimilarity(members, open_set=False, random_state=0).fit(X, y)
    >>> stack.predict([[X[0], X[1]], [X[0], X[70]]])
    array([ 1, -1])
    """

    weights_: FloatArray
    _fusion: Fusion
    _typical: TypicalPair | None = None

    def __init__(
        self,
        estimators: Sequence[tuple[str, Similarity]],
        *,
        open_set: bool = True,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimators = estimators
        self.open_set = open_set
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
        """Fit the maps and weights on folds, and all members on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        groups : array-like of shape (n_samples,) or (n_pairs, 2), optional
            Samples of a group are never in different folds. Members that take groups are given them.
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
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
            codes = None if groups is None else encode_groups(groups, len(samples))
            units = fold_units(source, len(samples), bool(self.open_set), codes)
            folds = [HeldOut(self._given(samples), source, fold, None, codes) for fold in make_folds(source, units, 0, rng)]
            if len(folds) < 2:
                raise ValueError(
                    "fewer than two folds have both same and different pairs inside and outside; give more identities or "
                    "samples, or fit a VotingSimilarity, which needs no folds."
                )
            scores = [{name: fold.score(member) for name, member in self._members()} for fold in folds]
            held_out = [HeldOutScores(0, fold.fold.pairs, part) for fold, part in zip(folds, scores, strict=True)]
            n_different = min(len(fold.pairs) - fold.pairs.n_same for fold in held_out)
            self._set_weights(Chooser(held_out, measurable_rate(TARGET, n_different)))
            index = source.sample(2, rng)  # all pairs, if they are given
            self._typical = TypicalPair.of(samples, self.columns_)
            self._fit_members(samples, source, index, codes, X, y, pairs, never_pair)
        return self

    def _fit_with(self, chooser: Chooser, given: dict[str, Any], groups: Units | None = None) -> Self:
        """Fit the members on all samples, where their scores of held-out pairs are there already."""
        arguments = {"pairs": None, "never_pair": None, **given}
        samples, source = check_training(self, **arguments)
        self._set_weights(chooser)
        self._typical = TypicalPair.of(samples, self.columns_)
        self._fit_members(samples, source, source.sample(2, np.random.default_rng(0)), groups, **arguments)
        return self

    def _set_weights(self, chooser: Chooser) -> None:
        """Set maps, weights and threshold from scores of held-out pairs; the members are those of ``estimators``."""
        names = [name for name, _ in self.estimators]
        self._set_fusion(chooser.fusion(names, chooser.all_folds))
        self.threshold_ = youden_threshold(roc_curve(*chooser.out_of_fold(names)))

    def _set_fusion(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self.weights_ = fusion.weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.open_set not in (True, False):
            raise ValueError(f"open_set={self.open_set!r} is unknown; give True or False.")

    def _get_fitted_state(self) -> dict[str, Any]:
        return {
            "members": self._get_members_state(),
            "maps": [monotone._get_state() for monotone in self._fusion.maps],
            "weights": self.weights_,
            "constant": self._fusion.constant,
            **({} if self._typical is None else {"typical_pair": self._typical._get_state()}),
        }

    def _set_fitted_state(self, fields: Fields) -> None:
        self._set_members_state(fields)
        maps = tuple(MonotoneMap._from_state(part) for part in fields.parts("maps", MAX_ESTIMATORS))
        if len(maps) != len(self.estimators_):
            raise fields.fail("maps", "must be one per member")
        weights = fields.array("weights", "float64", (len(maps),), low=0.0, high=MAX_RATIO)
        self._set_fusion(Fusion(maps, weights, fields.number("constant", -MAX_RATIO, MAX_RATIO)))
        if fields.has("typical_pair"):  # not in files of before
            self._typical = TypicalPair._from_state(fields.part("typical_pair"), n_columns(self))

    def _summary(self) -> dict[str, Any]:
        return {"weights": self.weights_.tolist(), "constant": self._fusion.constant, **super()._summary()}

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        return self._fusion.apply(list(self._member_scores(pairs)))

    def _max_score(self) -> float:
        return float(self._fusion.apply([np.array([member._max_score()]) for member in self.estimators_])[0])

    @available_if(_explains)
    def explain_pair(self, x: ArrayLike, x2: ArrayLike, **options: Any) -> Explanation:
        """Explain the score of the pair (x, x2) by the contribution of each feature.

        If all members are trees on the same features, their contributions are scaled by how much the member's part of the
        score changes per unit of its own score. Otherwise the features of a typical pair are replaced by those of the pair, one
        after the other in random orders, and a contribution is the mean change (a Shapley value). Either way the contributions
        add up to the score.

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
        return self._explain_rows(check_two(self, x, x2), **options)

    def _explain_rows(self, samples: NDArray[Any], **options: Any) -> Explanation:
        """Explain the score of two rows that are checked already."""
        if self.columns_ is not None:
            options = {"feature_names": self.columns_.names, **options}
        of_members = self._explained_members(samples, **options)
        if of_members is None:
            if self._typical is None:
                names = ", ".join(repr(name) for name, _ in self.estimators)
                raise ValueError(
                    f"the members {names} of this stack have different representations, and it was saved before such stacks "
                    "could be explained; fit it again."
                )
            return explain_any(self, self._typical, samples, **options)
        first = of_members[0]
        base, contributions = self._fusion.constant, np.zeros(len(first.contributions))
        for member, monotone, weight in zip(of_members, self._fusion.maps, self._fusion.weights, strict=True):
            start, end = Fusion.part(monotone.apply(np.array([member.base, member.score])), weight)
            base += start
            change = member.score - member.base
            if change != 0.0:
                contributions += (end - start) / change * member.contributions
        found = replace(first, contributions=contributions, base=float(base), score=float(base + contributions.sum()))
        if self.columns_ is None or list(found.feature_names) != list(options["feature_names"]):
            return found
        return with_words(found, self.columns_, samples)

    def _explained_members(self, samples: NDArray[Any], **options: Any) -> list[Explanation] | None:
        """Return the explanations by the members, or None if not all of them have one, of the same features."""
        members: list[Any] = self.estimators_
        if not all(hasattr(member, "explain_pair") for member in members):
            return None
        given = self._given(samples)
        found: list[Explanation] = [member._explain_rows(member._read(given), **options) for member in members]
        return found if all(other.feature_names == found[0].feature_names for other in found) else None
