"""Folds of pairs that share no identity, for scikit-learn's ``cv=``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from simtree._utils.validation import check_integer, check_pair_labels, count
from simtree.pairs._labels import encode_groups, encode_labels


class PairGroupKFold(BaseEstimator):
    """Split pairs into folds such that no identity of a test pair occurs in a training pair.

    Identities are distributed over the folds such that each fold has about the same number of same pairs and of different
    pairs. A pair is a test pair of the fold of its two identities. Where they are in two folds, the pair is a test pair of
    none, and a training pair where neither of the two folds is tested: if all identities are compared with each other, a
    share of about ``1 / n_splits`` of the different pairs is tested. Identities that are linked by pairs are kept in one
    fold as long as their pairs are at most a share of ``1 / n_splits`` of all pairs, so that no pair is lost if pairs come
    in small separate sets, as those of Labeled Faces in the Wild do.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether the folds are random. Identities with more pairs are distributed first, so that folds are even; if True, those
        whose numbers of pairs differ by less than a factor of two are distributed in random order.
    random_state : int, RandomState or None, default=None
        Random seed, if ``shuffle=True``.

    See Also
    --------
    split_identities : Split labelled samples, instead of pairs, into parts that share no identity.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from simtree import SimilarityTree
    >>> from simtree.pairs import PairGroupKFold, PairSampler
    >>> X, y = load_digits(return_X_y=True)
    >>> pairs = PairSampler(y).sample(2000, np.random.default_rng(0))
    >>> rows = np.column_stack([pairs.first, pairs.second])
    >>> cv = PairGroupKFold(n_splits=4)
    >>> tree = SimilarityTree(max_depth=4, random_state=0)
    >>> bool((cross_val_score(tree, X[rows], pairs.same, groups=y[rows], cv=cv) > 0.6).all())
    True
    """

    # With scikit-learn's metadata routing, groups need not be requested.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Not used; for compatibility with scikit-learn.

        Returns
        -------
        int
            Number of folds.
        """
        return check_integer("n_splits", self.n_splits, 2)

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return the training pairs and test pairs of each fold.

        Parameters
        ----------
        X : array-like of shape (n_pairs, ...)
            Pairs; only their number is used.
        y : array-like of shape (n_pairs,)
            Whether each pair is a same pair (bool, 0/1 or -1/+1).
        groups : array-like of shape (n_pairs, 2)
            Identities of the two samples of each pair.

        Returns
        -------
        iterator
            Over tuples ``(train, test)`` of numbers of pairs, in increasing order.
        """
        self.get_n_splits()
        if self.random_state is not None and not self.shuffle:
            raise ValueError(f"random_state={self.random_state!r} has no effect with shuffle=False; leave it out, or shuffle.")
        n_pairs = np.shape(X)[0]
        if y is None:
            raise ValueError("y is None; give whether each pair is a same pair.")
        same = check_pair_labels("y", y, n_pairs)
        if groups is None or np.shape(groups) != (n_pairs, 2):
            found = "is None" if groups is None else f"has shape {np.shape(groups)}"
            raise ValueError(f"groups {found}; give the identities of the two samples of each pair, shape ({n_pairs}, 2).")
        identities = encode_groups(groups, 2 * n_pairs).reshape(n_pairs, 2)
        rng = check_random_state(self.random_state) if self.shuffle else None
        inside = assign_identities(identities, same, self.n_splits, rng)[identities]
        folds = [((inside != fold).all(axis=1), (inside == fold).all(axis=1)) for fold in range(self.n_splits)]
        for train, test in folds:
            for part, chosen in (("train", train), ("test", test)):
                for kind, of_kind in (("same", same), ("different", ~same)):
                    if not (chosen & of_kind).any():
                        n_identities = count(int(identities.max()) + 1, "identity", "identities")
                        raise ValueError(
                            f"n_splits={self.n_splits!r} leaves a fold of these {n_pairs:,} pairs of {n_identities} without a "
                            f"{kind} pair to {part} on; use fewer folds, or give pairs of more identities."
                        )
        return ((np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds)


def assign_identities(
    identities: NDArray[np.int64],
    same: NDArray[np.bool_],
    n_folds: int,
    rng: np.random.RandomState | np.random.Generator | None,
) -> NDArray[np.int64]:
    """Return the fold of each identity.

    Parameters
    ----------
    identities : ndarray of shape (n_pairs, 2)
        Identities of the two samples of each pair, as integers from 0 without gaps.
    same : ndarray of bool of shape (n_pairs,)
        Whether each pair is a same pair.
    n_folds : int
        Number of folds.
    rng : RandomState, Generator or None
        Source of randomness; None distributes identities by their number of pairs, and in the order of appearance.

    Returns
    -------
    ndarray of shape (n_identities,)
        Fold of each identity.
    """
    units = _linked(identities, n_folds)
    kinds = np.repeat(same[:, None], 2, axis=1)
    # Shares of the samples of same pairs and of different pairs that belong to each unit.
    weights = np.column_stack([np.bincount(units[identities[kinds == kind]], minlength=units.max() + 1) for kind in (0, 1)])
    weights = weights / weights.sum(axis=0)
    sizes = weights.sum(axis=1)
    order = np.argsort(-sizes, kind="stable")
    if rng is not None:
        order = rng.permutation(len(sizes))
        order = order[np.argsort(-np.floor(np.log2(sizes[order])), kind="stable")]
    folds, loads = np.empty(len(weights), dtype=np.int64), np.zeros((n_folds, 2))
    for unit in order:
        # The largest first, each where it adds least to the sum of squared loads; ties go to the first fold.
        folds[unit] = np.argmin(loads @ weights[unit])
        loads[folds[unit]] += weights[unit]
    return np.asarray(folds[units])


def _linked(identities: NDArray[Any], n_folds: int) -> NDArray[np.int64]:
    """Return a unit for each identity: all identities that pairs link with it, or itself if they have too many pairs."""
    n = int(identities.max()) + 1
    links = coo_array((np.ones(len(identities), dtype=np.int8), identities.T), shape=(n, n))
    _, components = connected_components(links, directed=False)
    n_pairs = np.bincount(components[identities[:, 0]])
    return encode_labels(np.where(n_pairs[components] * n_folds <= len(identities), components, n + np.arange(n)))
