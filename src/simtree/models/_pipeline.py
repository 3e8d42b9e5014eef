"""Conversion of a scikit-learn Pipeline that ends in a similarity to one model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import NotFittedError, check_is_fitted

from simtree.models._base import Similarity
from simtree.models._represented import RepresentedMixin
from simtree.representation._columns import ColumnRepresentation, with_numbered_columns


def from_pipeline(pipeline: Pipeline) -> Similarity:
    """Convert a Pipeline that ends in a similarity to that similarity, with the other steps as its ``representation``.

    A Pipeline has no `pair_score`, and cannot be evaluated or saved to a model file; the returned model can. It is fitted if
    the Pipeline is, and then scores pairs as the last step of the Pipeline scores transformed samples. It can be saved if the
    steps are representations of simtree, or scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler,
    Normalizer, PCA, SimpleImputer, OrdinalEncoder or OneHotEncoder, or a ColumnTransformer of them.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Transformers followed by a similarity that has the parameter ``representation``. It is not modified.

    Returns
    -------
    Similarity
        A model with the class and parameters of the last step.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import simtree
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), simtree.SimilarityTree(max_depth=4, random_state=0)).fit(X, y)
    >>> model = simtree.from_pipeline(pipeline)
    >>> model.pair_score([[X[0], X[1]], [X[0], X[100]]])
    array([16.,  4.])
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"pipeline={pipeline!r} is not a scikit-learn Pipeline; give one whose last step is a similarity.")
    last = pipeline.steps[-1][1]
    if not isinstance(last, Similarity):
        raise TypeError(f"pipeline ends in {last!r}, which is not a similarity; put one such as SimilarityForest() last.")
    steps = [(name, step) for name, step in pipeline.steps[:-1] if step is not None and step != "passthrough"]
    if not steps:
        return _copy(last)
    if not isinstance(last, RepresentedMixin):
        raise TypeError(
            f"{type(last).__name__} has no parameter representation; pass the transformers to its members, or end the Pipeline "
            "in a SimilarityForest, SimilarityTree, GaussianSimilarity or DistanceSimilarity."
        )
    model: Any = clone(last)
    model.representation = _joined([(name, clone(step)) for name, step in steps], model.representation)
    if not all(_is_fitted(step) for _, step in [*steps, pipeline.steps[-1]]):
        return model  # type: ignore[no-any-return]
    model.__dict__.update({name: value for name, value in vars(last).items() if name not in model.get_params(deep=False)})
    first = steps[0][1]
    names = getattr(first, "feature_names_in_", None)
    fitted = [(name, with_numbered_columns(step, None)) for name, step in steps]
    if any(_reads_words(step) for _, step in fitted):
        raise TypeError(
            "pipeline was fitted on words, which its steps have learned and a model would not pass to them; convert the "
            "unfitted Pipeline, and fit the model on the table."
        )
    model.representation = with_numbered_columns(model.representation, names)
    model.representation_ = _joined(fitted, last.representation_)
    model.n_features_in_ = first.n_features_in_
    model.__dict__.pop("feature_names_in_", None)
    model.__dict__.pop("_typical", None)  # explanations would start from transformed samples
    if hasattr(first, "feature_names_in_"):
        model.feature_names_in_ = first.feature_names_in_
    return model  # type: ignore[no-any-return]


def _is_fitted(step: Any) -> bool:
    """Return whether a step of a Pipeline is fitted."""
    try:
        check_is_fitted(step)
    except NotFittedError:
        return False
    return True


def _reads_words(step: Any) -> bool:
    """Return whether a fitted transformer has learned words: its categories are not numbers."""
    if isinstance(step, Pipeline):
        return any(_reads_words(part) for _, part in step.steps)
    if isinstance(step, ColumnRepresentation):
        return any(_reads_words(part) for _, part, _ in step.transformers_)
    return any(np.asarray(found).dtype.kind not in "fiub" for found in getattr(step, "categories_", ()))


def _joined(steps: list[tuple[str, Any]], representation: Any) -> Any:
    """Return transformers, followed by a representation unless it is None, as one transformer."""
    if representation is not None:
        steps = [*steps, ("representation", representation)]
    return steps[0][1] if len(steps) == 1 else Pipeline(steps)


def _copy(model: Similarity) -> Similarity:
    """Return an independent copy with the same parameters and state."""
    copy: Similarity = clone(model)
    copy.__dict__.update({name: value for name, value in vars(model).items() if name not in model.get_params(deep=False)})
    return copy
