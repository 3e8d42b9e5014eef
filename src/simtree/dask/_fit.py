"""Fit, evaluate and calibrate on a cluster: the model's own methods, with samples that are not in this program's memory."""

from __future__ import annotations

from typing import Any, TypeVar

from distributed import Client
from sklearn.utils.validation import check_is_fitted

from simtree.dask._cluster import Cluster
from simtree.dask._inputs import known, samples_on, stacked_pairs
from simtree.evaluation import Evaluation
from simtree.evaluation import evaluate as evaluate_here
from simtree.models._base import check_similarity
from simtree.pairs._inputs import check_samples

Model = TypeVar("Model")


def fit(model: Model, X: Any, y: Any, *, client: Client | None = None, **options: Any) -> Model:
    """Fit a model on a cluster: the same model, bit for bit, as ``model.fit(X, y)`` on one machine.

    Trees of a forest are grown by the workers, and no worker needs all of X. The result depends neither on the workers nor on
    the chunks of X.

    Parameters
    ----------
    model : Similarity
        The estimator. Its ``n_jobs`` is for what is done here, not for the workers.
    X : Dask array or frame, or array-like, of shape (n_samples, n_features) or (n_pairs, 2, n_features)
        Samples or pairs, as in ``fit`` of the model.
    y : Dask array or series, or array-like
        Label of each sample, or whether each pair is a same pair. It must fit into the memory of this program.
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.
    **options : dict
        Further parameters of ``fit`` of the model, such as ``pairs``, ``groups`` and ``never_pair``.

    Returns
    -------
    Similarity
        The estimator itself, fitted.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityForest, dask as simdask
    >>> X, y = load_iris(return_X_y=True)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    ...     forest = simdask.fit(SimilarityForest(n_estimators=5, random_state=0), da.from_array(X), y, client=client)
    >>> forest.predict([[0, 1], [0, 149]], X)
    array([ 1, -1])
    """
    check_similarity(model, fitted=False)
    samples, y, options = _arguments(Cluster(client), X, y, options)
    model.fit(samples, y, **options)  # type: ignore[attr-defined]
    return model


def evaluate(model: Any, X: Any, y: Any, *, client: Client | None = None, **options: Any) -> Evaluation:
    """Evaluate a model on a cluster: the same result as of `simtree.evaluate`.

    Workers score blocks of pairs, and this program counts them: its memory and theirs do not depend on the number of pairs.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    X, y : Dask collections, or array-like
        Held-out data, as in `fit`.
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.
    **options : dict
        Further parameters of `simtree.evaluate`.

    Returns
    -------
    Evaluation
        Metrics with their intervals.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, dask as simdask
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceSimilarity(metric="euclidean").fit(X, y)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    ...     result = simdask.evaluate(model, X, y, unit="samples", client=client)
    >>> round(result.auc.value, 2)
    0.94
    """
    check_similarity(model, fitted=False)
    samples, y, options = _arguments(Cluster(client), X, y, options)
    return evaluate_here(model, samples, y, **options)


def calibrate_threshold(model: Model, X: Any, y: Any, *, client: Client | None = None, **options: Any) -> Model:
    """Choose the threshold of a model on a cluster, as its method `calibrate_threshold` does.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    X, y : Dask collections, or array-like
        Held-out data, as in `fit`.
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.
    **options : dict
        Further parameters of ``calibrate_threshold`` of the model, such as ``max_fpr``.

    Returns
    -------
    Similarity
        The model itself, with its ``threshold_`` and ``threshold_report_``.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, dask as simdask
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceSimilarity(metric="euclidean").fit(X, y)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    ...     _ = simdask.calibrate_threshold(model, X, y, max_fpr=0.05, confidence=None, client=client)
    >>> round(model.threshold_, 2)
    -1.01
    """
    check_similarity(model, fitted=False)
    samples, y, options = _arguments(Cluster(client), X, y, options)
    model.calibrate_threshold(samples, y, **options)  # type: ignore[attr-defined]
    return model


def scorer_on(model: Any, X: Any, client: Client | None) -> Any:
    """Return a function from two arrays of row numbers to scores, for pairs that come in many blocks."""
    check_is_fitted(model)
    return model._scorer(model._prepared(check_samples(model, samples_on(Cluster(client), X))))


def _arguments(cluster: Cluster, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return samples on the cluster, and labels and options in the memory of this program."""
    if options.get("enrol") is not None:
        raise ValueError("enrol is not supported on a cluster; use simtree.evaluate or the model's calibrate_threshold.")
    X, pairs = stacked_pairs(X)
    options = {name: known(cluster, value) for name, value in options.items()}
    if pairs is not None:
        if options.get("pairs") is not None:
            raise ValueError("pairs are row numbers of samples, but X has pairs already; leave them out.")
        options["pairs"] = pairs
    return samples_on(cluster, X), known(cluster, y), options
