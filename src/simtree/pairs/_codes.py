"""Codes of the values of categories in a matrix: the place in a vocabulary, or a large number that follows from the value."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._cells import Value

#: Code of a missing category.
MISSING = -1.0
#: Code that encoders see in place of values outside of the vocabulary; NaN is a missing value.
OTHER = -2.0
#: Codes of values that are not in the vocabulary begin here. All of them are exact in float32, which galleries may store: they
#: have so many binary digits and exponents.
FIRST_HASHED, HASHED_DIGITS, HASHED_EXPONENTS = 1 << 31, 23, 32


def known_codes(matrix: NDArray[Any], columns: NDArray[np.int64]) -> NDArray[Any]:
    """Return a matrix with `OTHER` in place of codes of values that are not in the vocabulary.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_columns)
        Samples of a table.
    columns : ndarray of int
        Columns of codes.

    Returns
    -------
    ndarray of shape (n_samples, n_columns)
        A copy, or the matrix itself if there are none.
    """
    codes = matrix[:, columns]
    if not (codes >= FIRST_HASHED).any():
        return matrix
    found = matrix.copy()
    found[:, columns] = np.where(codes >= FIRST_HASHED, OTHER, codes)
    return found


def digest(text: str) -> int:
    """Return 64 bits that follow from text, also if it has characters that UTF-8 has not, as broken file names do.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    int

    Examples
    --------
    >>> digest("a") == digest("a") != digest(chr(0xD800))
    True
    """
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hashed(value: Value) -> float:
    """Return the code of a value that is not in a vocabulary: the same wherever it is read.

    Parameters
    ----------
    value : str or float
        The value; a date as `date_named` returns it, so that it has the same code in all spellings.

    Returns
    -------
    float
        A number of at least `FIRST_HASHED`. Two values have the same one with a probability of 4e-9.

    Examples
    --------
    >>> hashed("red") == hashed("red") > 2**31, hashed("red") == hashed("blue"), hashed("1.0") == hashed(1.0)
    (True, False, False)
    """
    text = f"s{value}" if isinstance(value, str) else f"n{float(value)!r}"
    number = digest(text)
    exponent, digits = divmod(number % (HASHED_EXPONENTS << HASHED_DIGITS), 1 << HASHED_DIGITS)
    return FIRST_HASHED * (1.0 + digits / (1 << HASHED_DIGITS)) * 2.0**exponent
