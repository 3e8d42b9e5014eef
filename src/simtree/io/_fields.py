"""Validated access to the entries of a model file by name and type."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count

# Keys in a document that mark a reference to an array, or a number that JSON cannot represent.
ARRAY = "$array"
NUMBER = "$number"
NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# Larger arrays and lengths are treated as damage.
MAX_BYTES = 1 << 30
# Larger counts are treated as damage.
MAX_COUNT = 1 << 53
# The square of the product of two larger numbers may overflow.
MAX_MODERATE = 1e70


class ModelFileError(ValueError):
    """Error raised if a file is not a model file, is damaged, or was written by a newer simtree."""


@dataclass(frozen=True)
class Fields:
    """A part of a document, whose entries are read by name and type.

    Each method raises `ModelFileError`, with the names of the file and of the entry, if the entry is missing or invalid.
    """

    file: str
    place: str
    content: Mapping[str, Any]
    arrays: Sequence[NDArray[Any]]

    def fail(self, name: str, what: str) -> ModelFileError:
        """Return the error that an entry is invalid."""
        return ModelFileError(f"{self.file} is damaged: {self.place}{name} {what}.")

    def get(self, name: str) -> Any:
        """Return an entry as it is; infinite and NaN numbers are decoded."""
        if name not in self.content:
            raise self.fail(name, "is missing")
        return self._decode(name, self.content[name])

    def has(self, name: str) -> bool:
        """Return whether the entry exists and is not None."""
        return self.content.get(name) is not None

    def part(self, name: str) -> Fields:
        """Return an entry that is itself a document."""
        return self._part(name, self.get(name))

    def parts(self, name: str, max_length: int) -> list[Fields]:
        """Return an entry that is a list of documents."""
        values = self.items(name, max_length)
        return [self._part(f"{name}[{k}]", value) for k, value in enumerate(values)]

    def items(self, name: str, max_length: int) -> list[Any]:
        """Return an entry that is a list."""
        values = self.get(name)
        if not isinstance(values, list) or len(values) > max_length:
            raise self.fail(name, f"must be a list of at most {max_length:,} entries")
        return [self._decode(name, value) for value in values]

    def string(self, name: str, choices: Iterable[str] | None = None) -> str:
        """Return an entry that is a string, and one of the choices if they are given."""
        value = self.get(name)
        known = None if choices is None else tuple(choices)
        if not isinstance(value, str) or (known is not None and value not in known):
            raise self.fail(name, "must be a string" if known is None else f"must be one of {', '.join(map(repr, known))}")
        return value

    def strings(self, name: str, max_length: int) -> list[str]:
        """Return an entry that is a list of strings."""
        values = self.items(name, max_length)
        if not all(isinstance(value, str) for value in values):
            raise self.fail(name, "must be a list of strings")
        return values

    def integer(self, name: str, low: int, high: int) -> int:
        """Return an entry that is an integer in a range."""
        value = self.get(name)
        if type(value) is not int or not low <= value <= high:
            raise self.fail(name, f"must be an integer from {low:,} to {high:,}")
        return value

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """Return an entry that is a number in a range."""
        value = self.get(name)
        if not _is_number(value) or not low <= value <= high:
            raise self.fail(name, f"must be a number from {low:g} to {high:g}")
        return float(value)

    def numbers(self, name: str, length: int) -> NDArray[np.float64]:
        """Return an entry that is a list of numbers, which need not be finite."""
        values = self.items(name, length)
        if len(values) != length or not all(map(_is_number, values)):
            raise self.fail(name, f"must be a list of {length:,} numbers")
        return np.array(values, dtype=np.float64)

    def flag(self, name: str) -> bool:
        """Return an entry that is true or false."""
        value = self.get(name)
        if type(value) is not bool:
            raise self.fail(name, "must be true or false")
        return value

    def array(
        self, name: str, dtype: str, shape: tuple[int | None, ...], *, low: float = -math.inf, high: float = math.inf
    ) -> NDArray[Any]:
        """Return an entry that is an array of a dtype and shape (None: any length) of finite numbers in a range."""
        value = self.get(name)
        number = value.get(ARRAY) if isinstance(value, dict) else None
        if type(number) is not int or not 0 <= number < len(self.arrays):
            raise self.fail(name, "must be an array that the file holds")
        array = self.arrays[number]
        if array.dtype.name != dtype or array.ndim != len(shape):
            raise self.fail(name, f"must be an array of {dtype} with {count(len(shape), 'dimension')}")
        if any(wanted is not None and length != wanted for length, wanted in zip(array.shape, shape, strict=True)):
            raise self.fail(name, f"has the shape {array.shape}, which does not match the other entries")
        if array.size and not (low <= array.min() and array.max() <= high and np.isfinite(array).all()):
            raise self.fail(name, f"must hold finite numbers from {low:g} to {high:g}")
        return array

    def moderate(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
        """Return an entry that is an array of numbers whose products do not overflow."""
        return self.array(name, "float64", shape, low=-MAX_MODERATE, high=MAX_MODERATE)

    def lengths(self, name: str, n: int | None, total: int | None = None, *, low: int = 0) -> NDArray[np.int64]:
        """Return an entry that is an array of lengths with a given total."""
        found = self.array(name, "int64", (n,), low=low, high=MAX_BYTES)
        if total is not None and int(found.sum()) != total:
            raise self.fail(name, f"must sum to {total:,}")
        return found

    def _part(self, name: str, value: Any) -> Fields:
        if not isinstance(value, dict):
            raise self.fail(name, "must be a mapping")
        return Fields(self.file, f"{self.place}{name}.", value, self.arrays)

    def _decode(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict) or NUMBER not in value:
            return value
        word = value[NUMBER]
        if not isinstance(word, str) or word not in NON_FINITE:
            raise self.fail(name, "must be a number")
        return NON_FINITE[word]


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that float64 can hold; JSON allows integers of any size."""
    return type(value) is float or (type(value) is int and abs(value) < 1 << 63)


def moderate(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array to be written, after checking that it will be accepted when it is read."""
    if array.size and np.abs(array).max() > MAX_MODERATE:
        raise ValueError(f"the model holds numbers beyond {MAX_MODERATE:g}, which cannot be saved; scale the samples first.")
    return array
