"""Parts of labelled samples that share no identity, to train, tune and test on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from simtree._utils.validation import check_real
from simtree.pairs._labels import encode_labels

# Fewer identities than this have no different pair.
MIN_IDENTITIES_PER_PART = 2


def split_identities(
    y: ArrayLike, shares: Mapping[str, float], *, random_state: int | np.random.RandomState | None = None
) -> dict[str, NDArray[np.int64]]:
    """Split samples into parts that share no identity.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Identity of each sample.
    shares : mapping of str to float
        Share of the identities that each part gets, by its name. Their sum is at most 1; what is left is in no part.
    random_state : int, RandomState or None, default=None
        Random seed: which identities come into which part.

    Returns
    -------
    dict of str to ndarray
        Row numbers of the samples of each part, in their order in ``y``.

    Examples
    --------
    >>> from simtree.pairs import split_identities
    >>> parts = split_identities([0, 0, 1, 1, 2, 2, 3, 3], {"train": 0.5, "test": 0.5}, random_state=0)
    >>> {name: rows.tolist() for name, rows in parts.items()}
    {'train': [4, 5, 6, 7], 'test': [0, 1, 2, 3]}
    """
    identities = encode_labels(y)
    n_identities = int(identities.max()) + 1
    ends = _ends(shares, n_identities)
    order = check_random_state(random_state).permutation(n_identities)
    return {
        name: np.flatnonzero(np.isin(identities, order[start:end]))
        for name, start, end in zip(shares, [0, *ends], ends, strict=False)
    }


def _ends(shares: Mapping[str, float], n_identities: int) -> list[int]:
    """Return where the identities of each part end, in a list of them all."""
    if not shares:
        raise ValueError("shares is empty; name at least one part, such as {'train': 0.5}.")
    for name, share in shares.items():
        check_real(f"shares[{name!r}]", share, 0.0, 1.0, open_low=True)
    sums = np.cumsum(list(shares.values()))
    if sums[-1] > 1.0 + 1e-9:
        raise ValueError(f"shares add up to {sums[-1]:g}; give shares of at most 1 in all.")
    ends: list[int] = np.rint(sums * n_identities).astype(int).tolist()
    for name, n in zip(shares, np.diff([0, *ends]), strict=True):
        if n < MIN_IDENTITIES_PER_PART:
            raise ValueError(
                f"shares[{name!r}]={shares[name]:g} of {n_identities} identities is {n}, and different pairs take "
                f"{MIN_IDENTITIES_PER_PART}; give a larger share, fewer parts, or data of more identities."
            )
    return ends
