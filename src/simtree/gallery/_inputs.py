"""Validation of what users give a gallery: ids, metadata, filters and times."""

from __future__ import annotations

import math
import numbers
import time as clock
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils import times
from simtree._utils.matrices import check_unmasked
from simtree._utils.validation import count
from simtree.pairs._labels import n_missing

MAX_ID_LENGTH = 1000
MAX_NAME_LENGTH = 100
# What SQLite holds as an integer.
MAX_INTEGER = (1 << 63) - 1

Value = str | int | float


def check_ids(ids: Any, name: str = "ids") -> list[str]:
    """Return ids as strings; integers become their digits, and a single id a list of one."""
    if isinstance(ids, str | numbers.Integral):
        ids = [ids]
    check_unmasked(name, ids)
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and ids.ndim == 1:
        return list(map(str, ids.tolist()))
    values = np.asarray(ids, dtype=object)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; give one id per sample.")
    return [_check_id(value, name) for value in values.tolist()]


def _check_id(value: Any, name: str) -> str:
    if type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool)):
        return str(int(value))
    if not isinstance(value, str):
        raise TypeError(f"{name} holds {value!r}; an id is a string or an integer.")
    if not value or len(value) > MAX_ID_LENGTH or "\0" in value or not _is_text(value):
        shown = value if len(value) <= 40 else f"{value[:40]}..."
        raise ValueError(f"{name} holds {shown!r}; an id is valid text of 1 to {MAX_ID_LENGTH:,} characters.")
    return value


def check_lengths(ids: list[str], n_samples: int) -> None:
    """Raise if there is not one id per sample."""
    if len(ids) != n_samples:
        raise ValueError(f"ids has {count(len(ids), 'entry', 'entries')} for {count(n_samples, 'sample')} of X; give one each.")


def check_metadata(metadata: Any, ids: list[str]) -> dict[str, dict[str, Value]]:
    """Return the values of each identity by name, from a data frame or a dict of columns; missing values are left out."""
    if metadata is None:
        return {}
    if not hasattr(metadata, "keys") and hasattr(metadata, "to_dict"):  # a frame of polars
        metadata = metadata.to_dict(as_series=False)
    if not hasattr(metadata, "keys"):
        raise TypeError(f"metadata={metadata!r} is not a table; give a data frame or a dict of columns.")
    found: dict[str, dict[str, Value]] = {}
    for key in metadata.keys():  # noqa: SIM118 - a frame of pandas, whose own iteration is no part of its protocol
        name = check_name(key)
        column = metadata[key]
        values = [column] * len(ids) if isinstance(column, str | numbers.Number) else list(column)
        if len(values) != len(ids):
            raise ValueError(
                f"metadata {name!r} has {count(len(values), 'value')} for {count(len(ids), 'sample')}; give one each."
            )
        for owner, value in zip(ids, values, strict=True):
            plain = _plain_value(value, f"metadata {name!r}")
            if plain is None:
                continue
            known = found.setdefault(owner, {}).setdefault(name, plain)
            if known != plain:
                raise ValueError(
                    f"metadata {name!r} is both {known!r} and {plain!r} for the id {owner!r}; an identity has one value."
                )
    return found


def check_where(where: Mapping[str, Any] | None) -> dict[str, list[Value]]:
    """Return the values that are allowed by name; one value or several may be given."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise TypeError(f"where={where!r} is not a mapping; give one such as {{'site': 'A'}}.")
    allowed: dict[str, list[Value]] = {}
    for key, value in where.items():
        name = check_name(key)
        several = (
            value if isinstance(value, Sequence | set | frozenset | np.ndarray) and not isinstance(value, str) else [value]
        )
        plain = [_plain_value(entry, f"where {name!r}") for entry in several]
        if not plain or None in plain:
            raise ValueError(f"where {name!r} is {value!r}; give a value, or a list of values of which one must hold.")
        allowed[name] = [entry for entry in plain if entry is not None]
    return allowed


def check_name(name: Any) -> str:
    """Return the name of a metadata column."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ValueError(
            f"the metadata name {name!r} is not usable; give a printable string of at most {MAX_NAME_LENGTH} characters."
        )
    return name


def _plain_value(value: Any, what: str) -> Value | None:
    """Return a value as SQLite holds it; None if it is missing."""
    plain = value.item() if isinstance(value, np.generic) else value
    if n_missing(np.array([plain], dtype=object)):
        return None
    if isinstance(plain, bool):
        return int(plain)
    if isinstance(plain, int) and abs(plain) <= MAX_INTEGER:
        return plain
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    if isinstance(plain, str) and _is_text(plain):
        return plain
    raise ValueError(f"{what} holds {value!r}; give strings, finite numbers or booleans, and dates as strings.")


def check_times(time: Any, n_samples: int) -> NDArray[np.float64]:
    """Return the time of each sample in seconds since 1970; now, if None."""
    return np.full(n_samples, clock.time()) if time is None else times.check_times(time, n_samples)


def _is_text(value: str) -> bool:
    """Return whether a string can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
