"""Tables of samples: their columns, each cell checked; errors name the column and the row."""

from __future__ import annotations

import difflib
import fnmatch
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simtree.cli._cells import as_booleans, as_dates, as_words, is_text, without_tokens
from simtree.cli._text_files import NAMES_OF_SEPARATORS, STANDARD_INPUT, comment_advice, file_kind, file_name, line_of
from simtree.pairs._cells import LARGE

DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
# What pandas calls a column without a name, which mostly has row numbers.
UNNAMED = "Unnamed: "
# A column is of numbers if at least this share of its cells are: the others are then mistakes.
MIN_SHARE_OF_NUMBERS = 0.5


@dataclass(frozen=True)
class Table:
    """A table and the file it comes from.

    Parameters
    ----------
    path : Path
        The file.
    frame : DataFrame
        Its content.
    separator : str or None
        What separates the cells of a text file; None if its lines cannot be counted.
    start : int
        Number of the first row, if this is a block of a file.

    Examples
    --------
    >>> table = Table(Path("people.csv"), pd.DataFrame({"who": ["ann", "bob"], "height": [1.7, 1.8]}))
    >>> table.numbers(["height"]).shape
    (2, 1)
    """

    path: Path
    frame: pd.DataFrame
    separator: str | None = None
    start: int = 0

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def name(self) -> str:
        """Return the name of the file in messages."""
        return file_name(self.path)

    @property
    def is_text(self) -> bool:
        """Return whether the file is a text table."""
        return self.path == STANDARD_INPUT or file_kind(self.path) in ("csv", "tsv")

    def check_column(self, name: str, wanted_by: str) -> str:
        """Return the name if there is such a column; otherwise raise an error with the closest names."""
        names = [str(column) for column in self.frame.columns]
        if name in names:
            return name
        alike = [column for column in names if column.casefold() == name.casefold()]
        close = alike or difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        if len(names) == 1 and not alike:
            known = ", ".join(NAMES_OF_SEPARATORS.values())
            raise ValueError(
                f"{self.name} has the one column {names[0]!r} and none {name!r}, which {wanted_by} names; if these are several "
                f"columns, separate their cells by one of: {known}."
            )
        meant = f"did you mean {' or '.join(map(repr, close))}?" if close else f"its columns are {some_names(names)}."
        raise ValueError(f"{self.name} has no column {name!r}, which {wanted_by} names; {meant}")

    def labels(self, name: str, option: str) -> NDArray[Any]:
        """Return the values of a column, of which none may be missing."""
        column = self.frame[self.check_column(name, option)]
        missing = np.flatnonzero(column.isna())
        if len(missing):
            self._refuse_comment(int(missing[0]))
            raise ValueError(f"{self._cell(name, missing[0])} is empty or NA; fill it in, or remove the row.")
        return np.asarray(column.to_numpy())

    def numbers(self, names: Sequence[str], *, can_drop: bool = False) -> pd.DataFrame:
        """Return columns as finite numbers; ``can_drop``: the user may leave out a column that is not numeric."""
        return pd.DataFrame({name: self._numbers(name, can_drop) for name in names}, index=self.frame.index)

    def features(
        self,
        names: Sequence[str],
        *,
        categories: Sequence[str] = (),
        dates: Sequence[str] = (),
        tokens: Sequence[str] = (),
        can_drop: bool = False,
    ) -> pd.DataFrame:
        """Return columns as they are: numbers, words and dates, with holes.

        Parameters
        ----------
        names : sequence of str
            The columns.
        categories : sequence of str
            Columns of words, even if most of their cells are numbers.
        dates : sequence of str
            Columns that must be dates; others are dates if all of their cells are.
        tokens : sequence of str
            Words for a missing value.
        can_drop : bool, default=False
            Whether the user may leave out a column with a wrong cell.

        Returns
        -------
        DataFrame
            Columns in which cells are of one kind.
        """
        found = {name: self._feature(name, name in categories, name in dates, tokens, can_drop) for name in names}
        return pd.DataFrame(found, index=self.frame.index)

    def _feature(self, name: str, is_category: bool, is_date: bool, tokens: Sequence[str], can_drop: bool) -> pd.Series:
        """Return a column: numbers if nearly all of its cells are, so that a wrong cell is found."""
        column = without_tokens(self.frame[name], tokens, is_category=is_category)
        if is_category or isinstance(column.dtype, pd.CategoricalDtype):
            self._refuse_large(name, column)
            return as_words(column)
        if column.dtype.kind in "iuf":
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            infinite = np.flatnonzero(np.isinf(numbers))
            if len(infinite):
                remedy = f"or leave the column out with --drop {name!r}." if can_drop else "or remove the row."
                raise ValueError(f"{self._cell(name, infinite[0])} is infinite; replace it, {remedy}")
        if not is_text(column):
            return column
        booleans = as_booleans(column)
        if booleans is not None:
            return booleans
        read = pd.to_numeric(column, errors="coerce")
        n_present = int(column.notna().sum())
        if not n_present or int(read.notna().sum()) < MIN_SHARE_OF_NUMBERS * n_present:
            if column.astype(str).str.fullmatch(DECIMAL_COMMA).sum() > MIN_SHARE_OF_NUMBERS * n_present:
                self._refuse_word(name, column, can_drop)
            comments = np.flatnonzero(column.astype(str).str.startswith("#"))
            if len(comments):
                self._refuse_comment(int(comments[0]))
            found = as_dates(column)
            if found is None and is_date:
                self._refuse_date(name, column)
            return column if found is None else found
        if int(read.notna().sum()) < n_present:
            self._refuse_word(name, column, can_drop)
        return read

    def rows_of(self, column: str, wanted_by: str, samples: Table) -> NDArray[np.int64]:
        """Return a column of row numbers of another table, counted from 0."""
        cells = self.frame[self.check_column(column, wanted_by)]
        names = np.flatnonzero(pd.to_numeric(cells, errors="coerce").isna() & cells.notna())
        if len(names):
            self._refuse_comment(int(names[0]))
            name = str(cells.iloc[names[0]])
            holding = [key for key in samples.frame.columns if (samples.frame[key].astype(str) == name).any()]
            key = holding[0] if holding else "COL"
            raise ValueError(
                f"{self._cell(column, names[0])} is {name!r}, which is not a row number of {samples.name}; if it names a "
                f"sample, say with --id {key} which column of {samples.name} has these names."
            )
        values = self._numbers(column, can_drop=False)
        bad = np.flatnonzero((values != np.floor(values)) | (values < 0) | (values >= len(samples)))
        if len(bad):
            raise ValueError(
                f"{self._cell(column, bad[0])} is {values[bad[0]]:.15g}; give a row number of {samples.name}, from 0 to "
                f"{len(samples) - 1}, or name the column of {samples.name} that it refers to with --id."
            )
        return values.astype(np.int64)

    def places_of(self, column: str, wanted_by: str, places: dict[str, int], rows_file: str) -> NDArray[np.int64]:
        """Return the row numbers of the keys in a column, from a dict of keys as text."""
        keys = self.labels(column, wanted_by).astype(str)
        found = np.array([places.get(key, -1) for key in keys.tolist()], dtype=np.int64)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            self._refuse_comment(int(unknown[0]))
            cell = self._cell(column, unknown[0])
            raise ValueError(f"{cell} is {keys.tolist()[unknown[0]]!r}, which the --id column of {rows_file} does not have.")
        return found

    def row(self, text: str, key: str | None) -> int:
        """Return the number of a row, given as a number or as its value in a column of unique values."""
        if key is None:
            if not text.isdecimal() or int(text) >= len(self):
                raise ValueError(f"{self.name} has no row {text}; its rows are 0 to {len(self) - 1}, or give --id COL.")
            return int(text)
        values = self.labels(key, "--id").astype(str)
        rows = np.flatnonzero(values == text)
        if len(rows) != 1:
            close = difflib.get_close_matches(text, values.tolist(), n=3, cutoff=0.5)
            meant = (
                f"; did you mean {' or '.join(map(repr, close))}?"
                if close and not len(rows)
                else "; give a value that is unique."
            )
            raise ValueError(f"{self.name}: column {key!r} has {len(rows)} rows with the value {text!r}{meant}")
        return int(rows[0])

    def _numbers(self, name: str, can_drop: bool) -> NDArray[np.float64]:
        column = self.frame[name]
        remedy = f"or leave the column out with --drop {name!r}." if can_drop else "or remove the row."
        if is_text(column):
            self._refuse_word(name, column, can_drop)
            column = pd.to_numeric(column)
        elif column.dtype.kind not in "biuf":
            remedy = f", {remedy}" if can_drop else "."
            raise ValueError(f"{self.name}: column {name!r} is of type {column.dtype}, not of numbers; convert it{remedy}")
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        for what, wrong in (("empty", np.isnan(values)), ("infinite", np.isinf(values))):
            rows = np.flatnonzero(wrong)
            if len(rows):
                self._refuse_comment(int(rows[0]))
                more = f" (so are {len(rows) - 1:,} more)" if len(rows) > 1 else ""
                raise ValueError(f"{self._cell(name, rows[0])} is {what}{more}; fill it in, {remedy}")
        return np.asarray(values)

    def _refuse_word(self, name: str, column: pd.Series, can_drop: bool) -> None:
        """Raise if a cell of a column of numbers is not one, with its place and what may be meant."""
        read = pd.to_numeric(column, errors="coerce")
        odd = np.flatnonzero(read.isna() & column.notna())
        if not len(odd):
            return
        value = str(column.iloc[odd[0]])
        self._refuse_comment(int(odd[0]))
        cell = f"{self._cell(name, odd[0])} is {value!r}"
        if DECIMAL_COMMA.fullmatch(value):
            raise ValueError(f"{cell}, with a decimal comma; write {value.replace(',', '.')}.")
        if not can_drop:
            raise ValueError(f"{cell}, not a number; correct it, or remove the row.")
        if not read.notna().any():
            raise ValueError(f"{cell}, and the column has no numbers; leave it out with --drop {name!r}.")
        raise ValueError(
            f"{cell}, not a number; correct it, say with --missing={shlex.quote(value)} that it stands for a missing value or "
            f"with --categories {shlex.quote(name)} that the column holds names, or leave the column out with --drop {name!r}."
        )

    def _refuse_date(self, name: str, column: pd.Series) -> None:
        """Raise if a cell of a column of dates is not one, with its place."""
        for row in np.flatnonzero(column.notna()).tolist():
            if isinstance(column.iloc[row], str) and as_dates(column.iloc[[row]]) is None:
                raise ValueError(
                    f"{self._cell(name, row)} is {str(column.iloc[row])!r}, but the model was fitted on dates there; write "
                    "dates such as 2020-01-31."
                )

    def _refuse_large(self, name: str, column: pd.Series) -> None:
        """Raise if a category has numbers of which several integers may have become one, because some cells are empty."""
        if column.dtype.kind == "f":
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            large = np.flatnonzero((np.abs(numbers) >= LARGE) & np.isfinite(numbers))
            if len(large):
                raise ValueError(
                    f"{self._cell(name, large[0])} is about {numbers[large[0]]:.15g}, and integers from 2**53 on cannot be "
                    "told apart if they are stored as floating-point numbers; store them as text."
                )

    def _cell(self, column: str, row: int) -> str:
        """Return where a cell is, in words: rows are counted from 0, and text files have lines."""
        number, line = self.start + int(row), self._line(row)
        return f"{self.name}: column {column!r}, row {number}{'' if line is None else f' (line {line})'}"

    def _line(self, row: int) -> int | None:
        return None if self.separator is None else line_of(self.path, self.separator, self.start + int(row))

    def _refuse_comment(self, row: int) -> None:
        """Raise if what is wrong with a row is that it is a comment."""
        if self.is_text and str(self.frame.iloc[row, 0]).startswith("#"):
            raise ValueError(comment_advice(self.name, self._line(row)))


def choose_features(found: Table, features: Sequence[str], drop: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the feature columns: those named, or all except dropped ones, those with another meaning, and unnamed ones.

    Names may be given one by one or separated by commas, and as patterns such as ``H*``.
    """
    names = [str(name) for name in found.frame.columns]
    if features:
        chosen = named_columns(found, features, "--features")
        for name in others:
            if name in chosen:
                raise ValueError(f"--features names {name!r}, which is not a feature; leave it out.")
    else:
        chosen = [name for name in names if name not in others and not name.startswith(UNNAMED)]
    dropped = set(named_columns(found, drop, "--drop"))
    chosen = [name for name in chosen if name not in dropped]
    if not chosen:
        raise ValueError(f"{found.name} has no feature column left; its columns are {some_names(names)}.")
    return chosen


def named_columns(found: Table, given: Sequence[str], option: str) -> list[str]:
    """Return the columns that an option names, one by one, separated by commas or by patterns."""
    names = [str(name) for name in found.frame.columns]
    chosen: list[str] = []
    for entry in given:
        # A name may have a comma or a bracket in it.
        for part in [entry] if entry in names else [piece.strip() for piece in entry.split(",") if piece.strip()]:
            matching = [part] if part in names else fnmatch.filter(names, part)
            chosen += matching or [found.check_column(part, option)]
    return list(dict.fromkeys(chosen))


def choose_categories(
    found: Table, categories: Sequence[str], names: Sequence[str], drop: Sequence[str], meanings: dict[str, str]
) -> list[str]:
    """Return the features that are categories; ``meanings`` says of other columns what they are."""
    chosen = named_columns(found, categories, "--categories")
    for name in chosen:
        if name in names:
            continue
        if name in meanings:
            raise ValueError(f"--categories names {name!r}, which is {meanings[name]}; leave it out there.")
        if name in named_columns(found, drop, "--drop"):
            raise ValueError(f"--categories and --drop both name {name!r}; leave it out of one of them.")
        raise ValueError(f"--categories names {name!r}, which is not among --features; add it there, or leave it out here.")
    return chosen


def missing_tokens(found: Table, names: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return the words for a missing value that an option names, one by one or separated by commas."""
    chosen: list[str] = []
    for entry in given:
        # A cell may have a comma in it, too.
        is_cell = "," in entry and any((found.frame[name].astype(str) == entry).any() for name in names)
        chosen += [entry] if is_cell else [piece for piece in entry.split(",") if piece]
    return chosen


def some_names(names: Sequence[str], most: int = 12) -> str:
    """Return names in quotes, only the first if there are many."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
