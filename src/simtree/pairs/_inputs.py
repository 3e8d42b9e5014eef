"""Validation of user input: arrays, data frames, pairs and identifiers become checked samples and row numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from simtree._utils.matrices import check_all_unmasked, check_matrix, check_rows, check_unmasked, refuse_missing
from simtree._utils.validation import check_pair_labels, count
from simtree.pairs._categories import same_identities
from simtree.pairs._cells import CATEGORY
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import Index, IndexPairs, PairSource
from simtree.pairs._store import GivenSamples, SampleStore
from simtree.pairs._table import TableColumns, is_chosen, is_table
from simtree.pairs._training_counts import TrainingCounts

# Samples of these types are used as they are; others are converted to the first.
DTYPES = [np.float64, np.float32]

RowPairs = tuple[NDArray[Any], Index, Index]


def check_samples(estimator: Any, X: ArrayLike | GivenSamples, *, reset: bool = False, stacked: bool = False) -> NDArray[Any]:
    """Return samples as a C-contiguous matrix of float32 or float64; not copied if it is one already.

    Parameters
    ----------
    estimator : estimator
        Its number and names of features are set or, if not ``reset``, compared.
    X : array-like or GivenSamples of shape (n_samples, n_features)
        Samples.
    reset : bool, default=False
        Whether this is a call of ``fit``.
    stacked : bool, default=False
        Whether rows 2p and 2p + 1 are the samples of pair p.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Finite numbers.
    """
    columns = _table_columns(estimator, X, reset=reset)
    if isinstance(X, GivenSamples):
        return cast(NDArray[Any], _check_given(estimator, X, columns, reset=reset))
    if columns is not None:
        if reset:
            validate_data(estimator, X, skip_check_array=True)  # sets the number and the names of features
        matrix = columns.read(X)
        if not estimator._takes_missing():
            refuse_missing(estimator, matrix, columns.names)
        return matrix
    return check_matrix(
        estimator, X, reset=reset, stacked=stacked, dtype=DTYPES, order="C", ensure_all_finite=_finiteness(estimator)
    )


def _check_given(estimator: Any, X: GivenSamples, columns: TableColumns | None, *, reset: bool) -> SampleStore:
    """Return samples that are not here as a matrix, checked or read near them."""
    if columns is None:
        return X.check(estimator, reset=reset)
    if reset:
        validate_data(estimator, X.head, skip_check_array=True)
    matrix = X.read(columns)
    if not estimator._takes_missing():
        matrix.refuse_missing(estimator, columns.names)
    return matrix


def _table_columns(estimator: Any, X: Any, *, reset: bool) -> TableColumns | None:
    """Return how a table is read by an estimator that takes categories, found in ``fit``; None if it is a matrix of numbers."""
    if not reset or not hasattr(estimator, "_table_categories"):
        return getattr(estimator, "columns_", None)
    given = estimator._table_categories()
    is_read = given is not None and (is_chosen(given) or is_table(X.head if isinstance(X, GivenSamples) else X))
    estimator.columns_ = TableColumns.of(X, given) if is_read else None
    return cast("TableColumns | None", estimator.columns_)


def n_columns(estimator: Any) -> int:
    """Return the number of columns of checked samples: features, or what a table is read into."""
    columns = getattr(estimator, "columns_", None)
    return int(estimator.n_features_in_) if columns is None else len(columns.names)


def _finiteness(estimator: Any) -> bool | str:
    """Return what scikit-learn's ``ensure_all_finite`` must be for an estimator that may take missing values."""
    return "allow-nan" if getattr(estimator, "_takes_missing", bool)() else True


def check_pairs(estimator: Any, pairs: ArrayLike, X: ArrayLike | None) -> RowPairs:
    """Return pairs to score as samples and row numbers.

    Parameters
    ----------
    estimator : Similarity
        The fitted model; its ``preprocessor`` looks up identifiers.
    pairs : array-like of shape (n_pairs, 2, n_features) or (n_pairs, 2)
        Pairs of samples, row numbers of X, or identifiers.
    X : array-like of shape (n_samples, n_features) or None
        Samples that row numbers refer to.

    Returns
    -------
    samples : ndarray of shape (n_samples, n_features)
        Checked samples.
    first, second : ndarrays of shape (n_pairs,)
        Row numbers of the two samples of each pair.
    """
    if X is not None:
        samples = check_samples(estimator, X)
        return samples, *check_index_pairs(pairs, len(samples))
    check_unmasked("pairs", pairs)
    given = _as_array(pairs, with_words=getattr(estimator, "columns_", None) is not None)
    if given.ndim == 2 and estimator.preprocessor is not None:
        table, first, second = look_up(given, estimator.preprocessor)
        return check_samples(estimator, table), first, second
    if given.ndim == 3:
        return _check_stacked(estimator, given, reset=False)
    if given.shape[1:] != (2,):  # reports errors in the samples first, if samples were given instead of pairs
        check_samples(estimator, pairs)
    raise ValueError(
        f"pairs has shape {given.shape}; give an array of shape (n_pairs, 2, n_features), "
        "or (n_pairs, 2) row numbers together with X."
    )


def check_two(estimator: Any, x: ArrayLike, x2: ArrayLike) -> NDArray[Any]:
    """Return two samples, which may be lists of numbers and words, as two checked rows."""
    check_all_unmasked(x=x, x2=x2)
    dtype = np.float64 if getattr(estimator, "columns_", None) is None else object
    return check_pairs(estimator, np.array([[x, x2]], dtype=dtype), None)[0]


def check_training(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    pairs: ArrayLike | None = None,
    never_pair: ArrayLike | None = None,
    *,
    reset: bool = True,
) -> tuple[NDArray[Any], PairSource]:
    """Return the samples and the pairs of the input of ``fit`` or ``score``.

    Parameters
    ----------
    estimator : Similarity
        The model.
    X : array-like of shape (n_samples, n_features), (n_pairs, 2, n_features) or (n_pairs, 2)
        Samples, pairs of samples, or pairs of identifiers for the ``preprocessor``.
    y : array-like of shape (n_samples,) or (n_pairs,)
        Label of each sample, or whether each pair is a same pair.
    pairs : array-like of shape (n_pairs, 2), optional
        Row numbers of X.
    never_pair : array-like of shape (n_samples,), optional
        Labelled samples that share a value here never form a pair.
    reset : bool, default=True
        Whether this is a call of ``fit``.

    Returns
    -------
    samples : ndarray of shape (n_samples, n_features)
        Checked samples.
    source : PairSource
        The given pairs, or a sampler of pairs of the labelled samples.
    """
    samples, source = _check_training(estimator, X, y, pairs, never_pair, reset=reset)
    if reset:
        estimator.training_counts_ = TrainingCounts.of(len(samples), source)
    columns = getattr(estimator, "columns_", None)
    if reset and columns is not None:
        identities = same_identities(source, len(samples))
        if isinstance(samples, SampleStore):
            samples, estimator.columns_ = samples.without_private(columns, identities)
        else:
            estimator.columns_ = columns.without_private(samples, identities)
        for column in estimator.columns_.columns:
            if column.kind == CATEGORY and column.n_distinct > 1 and not column.values:
                warnings.warn(
                    f"X has the column {column.name!r}, each of whose values only one identity has; leave it out if it names "
                    "an identity, a session or a file, which new samples would not share.",
                    UserWarning,
                    stacklevel=4,
                )
    return samples, source


def _check_training(
    estimator: Any, X: Any, y: Any, pairs: ArrayLike | None, never_pair: ArrayLike | None, *, reset: bool
) -> tuple[NDArray[Any], PairSource]:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give the label of each sample, "
            "or for pairs whether each is the same."
        )
    check_unmasked("X", X)
    check_unmasked("y", y)
    if pairs is not None:
        samples = check_samples(estimator, X, reset=reset)
        first, second = check_index_pairs(pairs, len(samples))
    elif _n_dimensions(X) == 3:
        samples, first, second = _check_stacked(estimator, _as_array(X, _reads_words(estimator, reset)), reset=reset)
    elif estimator.preprocessor is not None and _n_dimensions(X) == 2 and np.shape(X)[1] == 2:
        table, first, second = look_up(X, estimator.preprocessor)
        samples = check_samples(estimator, table, reset=reset)
    else:
        samples = check_samples(estimator, X, reset=reset)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(samples, labels)
        return samples, PairSampler(labels, never_pair=never_pair)
    if never_pair is not None:
        raise ValueError("never_pair is for labelled samples; leave unwanted pairs out of those that are given.")
    same = check_pair_labels("y", y, len(first))
    if (first == second).any():
        row = first[first == second][0]
        raise ValueError(f"pairs holds row {row} with itself; remove such pairs.")
    return samples, IndexPairs(first, second, same)


def _n_dimensions(X: Any) -> int:
    """Return the number of dimensions; a data frame need not become one array, which a date and a number cannot share."""
    return 2 if hasattr(X, "columns") else np.ndim(X)


def _as_array(X: Any, with_words: bool) -> NDArray[Any]:
    """Return nested lists as an array; ``with_words``: of objects, so that numbers beside words stay numbers."""
    return np.asarray(X, dtype=object) if with_words and not isinstance(X, np.ndarray) else np.asarray(X)


def _reads_words(estimator: Any, reset: bool) -> bool:
    """Return whether arrays are read as tables: in ``fit`` if categories are named, later if that was so in ``fit``."""
    return is_chosen(estimator._table_categories()) if reset else getattr(estimator, "columns_", None) is not None


def _check_stacked(estimator: Any, pairs: NDArray[Any], *, reset: bool) -> RowPairs:
    """Return the samples and row numbers of ``(n_pairs, 2, n_features)`` pairs."""
    if pairs.shape[1] != 2:
        raise ValueError(f"pairs has shape {pairs.shape}; it must be (n_pairs, 2, n_features).")
    samples, first, second = stack_pairs(pairs)
    if reset or getattr(estimator, "columns_", None) is not None:
        return check_samples(estimator, samples, reset=reset, stacked=True), first, second
    # Not validate_data, which would warn that pairs have no feature names: an array of pairs cannot have any.
    checked = check_rows(
        "pairs", samples, stacked=True, dtype=DTYPES, order="C", ensure_min_samples=0, ensure_all_finite=_finiteness(estimator)
    )
    if checked.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"pairs has {count(checked.shape[1], 'feature')}, but {type(estimator).__name__} is expecting "
            f"{count(estimator.n_features_in_, 'feature')}."
        )
    return checked, first, second


def check_index_pairs(pairs: ArrayLike, n_samples: int) -> tuple[Index, Index]:
    """Return the two columns of ``(n_pairs, 2)`` row numbers, checked against the number of samples."""
    check_unmasked("pairs", pairs)
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"pairs has shape {rows.shape}; row numbers of pairs must have shape (n_pairs, 2).")
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"pairs has dtype {rows.dtype}; row numbers of pairs must be integers.")
    if rows.size and (rows.min() < 0 or rows.max() >= n_samples):
        bad = rows[(rows < 0) | (rows >= n_samples)][0]
        raise IndexError(f"pairs holds the row number {bad}; X has {count(n_samples, 'row')}, numbered from 0.")
    return np.ascontiguousarray(rows[:, 0], dtype=np.int32), np.ascontiguousarray(rows[:, 1], dtype=np.int32)


def stack_pairs(pairs: NDArray[Any]) -> tuple[NDArray[Any], Index, Index]:
    """Return samples and row numbers of ``(n_pairs, 2, n_features)`` pairs: pair p is rows 2p and 2p + 1.

    The samples are a view.
    """
    n_pairs = pairs.shape[0]
    first = np.arange(0, 2 * n_pairs, 2, dtype=np.int32)
    return pairs.reshape(2 * n_pairs, pairs.shape[2]), first, first + np.int32(1)


def look_up(
    pairs: ArrayLike, preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike]
) -> tuple[NDArray[Any], Index, Index]:
    """Return samples and row numbers of pairs of identifiers, as metric-learn's preprocessor defines them.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
        Identifiers.
    preprocessor : array-like of shape (n_samples, n_features) or callable
        Samples whose row numbers are the identifiers, or a function that returns the samples of identifiers; it is called
        once, with the distinct identifiers.

    Returns
    -------
    samples : ndarray of shape (n_samples, n_features)
        Samples, not checked yet.
    first, second : ndarrays of shape (n_pairs,)
        Row numbers of the two samples of each pair.
    """
    keys = np.asarray(pairs)
    if keys.ndim != 2 or keys.shape[1] != 2:
        raise ValueError(f"pairs has shape {keys.shape}; with a preprocessor it must be (n_pairs, 2).")
    if not callable(preprocessor):
        check_unmasked("preprocessor", preprocessor)
        table = np.asarray(preprocessor)
        if table.ndim != 2:
            raise ValueError(f"preprocessor has shape {table.shape}; give an (n_samples, n_features) array, or a function.")
        return table, *check_index_pairs(keys, len(table))
    distinct, rows = np.unique(keys, return_inverse=True)
    table = np.asarray(preprocessor(distinct))
    if table.ndim != 2 or len(table) != len(distinct):
        raise ValueError(
            f"preprocessor returned shape {table.shape} for {count(len(distinct), 'identifier')}; "
            "it must return one row for each."
        )
    return table, *check_index_pairs(rows.reshape(keys.shape), len(table))


def check_weights(sample_weight: ArrayLike | None, source: PairSource) -> tuple[PairSource, NDArray[np.float64] | None]:
    """Return the pairs to learn from, and their weights.

    Parameters
    ----------
    sample_weight : array-like of shape (n_pairs,) or None
        Weights of given pairs.
    source : PairSource
        The pairs.

    Returns
    -------
    source : PairSource
        The pairs, without those whose weight is 0: these would count in leaves, bins, held-out pairs and thresholds.
    weights : ndarray of shape (n_pairs,) or None
        Finite weights of the pairs that are left, above 0; both kinds of pair are among them.
    """
    if sample_weight is None:
        return source, None
    given = source.given()
    if given is None:
        raise ValueError("sample_weight is for given pairs; leave it out for labelled samples, whose pairs are drawn.")
    check_unmasked("sample_weight", sample_weight)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight is not a list of numbers; give one for each of the {len(given)} pairs.") from error
    if weights.shape != (len(given),):
        raise ValueError(f"sample_weight has shape {weights.shape}; give one weight for each of the {len(given)} pairs.")
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError("sample_weight holds negative or non-finite numbers; give finite weights of at least 0.")
    if not all(weights[kind].any() for kind in (given.same, ~given.same)):
        raise ValueError("sample_weight is 0 for all same or for all different pairs; give both kinds a positive weight.")
    weighs = weights > 0.0
    return (source, weights) if weighs.all() else (given.take(weighs), weights[weighs])
