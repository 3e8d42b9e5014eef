"""Score files: comparisons and their scores as text, in the 4-column and 5-column formats of bob and as CSV.

A comparison has a claimed identity (whose model it is), a real identity (whose probe it is), labels of the model and of the
probe, and a score. It is a same pair if and only if the two identities are equal. There is one line per comparison:

    4 columns    claimed_id real_id probe_label score
    5 columns    claimed_id model_label real_id probe_label score
    CSV          the same names as header, in any order; model_label is optional, and other columns are ignored

Columns of the first two formats are separated by whitespace; empty lines and lines that begin with ``#`` are ignored. Files are
read and written line by line: memory holds two integers and a score per comparison, and each identity once.
"""

from __future__ import annotations

import csv
import io
import math
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from simtree._utils.files import opened_atomically
from simtree._utils.validation import check_choice, count

FOUR, FIVE, CSV = "4column", "5column", "csv"
FORMATS = (FOUR, FIVE, CSV)
COLUMNS = {
    FOUR: ("claimed_id", "real_id", "probe_label", "score"),
    FIVE: ("claimed_id", "model_label", "real_id", "probe_label", "score"),
}


class Comparison(NamedTuple):
    """Comparison of a model with a probe: one line of a score file.

    Parameters
    ----------
    claimed_id : str
        Identity of the model.
    real_id : str
        Identity of the probe.
    probe_label : str
        Label of the probe, such as a file name.
    score : float
        Score; larger for more similar samples.
    model_label : str, default=""
        Label of the model.

    Examples
    --------
    >>> from simtree.evaluation import Comparison
    >>> Comparison("ann", "ann", "ann/3", 1.5).same
    True
    """

    claimed_id: str
    real_id: str
    probe_label: str
    score: float
    model_label: str = ""

    @property
    def same(self) -> bool:
        """Whether the claimed and the real identity are equal."""
        return self.claimed_id == self.real_id


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Comparisons of a score file as arrays, as `simtree.evaluate_scores` expects them.

    Parameters
    ----------
    scores : ndarray of shape (n_pairs,)
        Scores; larger for more similar samples.
    same : ndarray of shape (n_pairs,)
        Whether each pair is a same pair.
    identities : ndarray of shape (n_pairs, 2)
        Identities of the model and of the probe of each pair, as indices into ``names``.
    names : list of str
        Names of the identities.
    """

    scores: NDArray[np.float64]
    same: NDArray[np.bool_]
    identities: NDArray[np.int32]
    names: list[str]


def read_scores(path: str | os.PathLike[str], *, format: str | None = None) -> ScoreTable:
    """Read a score file as arrays.

    Parameters
    ----------
    path : str or path
        The file.
    format : {"4column", "5column", "csv"}, optional
        Format of the file. By default CSV if the extension is .csv; otherwise it follows from the number of columns of the
        first line.

    Returns
    -------
    ScoreTable
        The comparisons as arrays.

    Examples
    --------
    >>> from simtree.evaluation import Comparison, read_scores, write_scores
    >>> import tempfile
    >>> from simtree import evaluate_scores
    >>> lines = [Comparison("ann", "ann", "ann/1", 0.9), Comparison("ann", "bob", "bob/1", 0.2)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = write_scores(f"{folder}/scores.txt", lines, format="4column")
    ...     table = read_scores(f"{folder}/scores.txt")
    >>> evaluate_scores(table.scores, table.same, identities=table.identities).auc.value
    1.0
    """
    scores, identities = array("d"), array("i")
    numbers: dict[str, int] = {}
    for comparison in iterate_scores(path, format=format):
        scores.append(comparison.score)
        identities.append(numbers.setdefault(comparison.claimed_id, len(numbers)))
        identities.append(numbers.setdefault(comparison.real_id, len(numbers)))
    pairs = np.array(identities, dtype=np.int32).reshape(-1, 2)
    return ScoreTable(np.array(scores, dtype=np.float64), pairs[:, 0] == pairs[:, 1], pairs, list(numbers))


def iterate_scores(path: str | os.PathLike[str], *, format: str | None = None) -> Iterator[Comparison]:
    """Iterate over the lines of a score file, without reading all of it into memory.

    Parameters
    ----------
    path : str or path
        The file.
    format : {"4column", "5column", "csv"}, optional
        Format of the file, as in `read_scores`.

    Yields
    ------
    Comparison
        One line.

    Raises
    ------
    ValueError
        At the first line that cannot be read; the message has its number.
    """
    file = Path(path)
    kind = _format(file, format)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        yield from _csv_lines(file.name, stream) if kind == CSV else _plain_lines(file.name, stream, kind)


def write_scores(path: str | os.PathLike[str], comparisons: Iterable[Comparison], *, format: str | None = None) -> int:
    """Write a score file line by line; if an error occurs, no file is left behind.

    Parameters
    ----------
    path : str or path
        The file.
    comparisons : iterable of Comparison
        The comparisons; a generator is consumed as they are written.
    format : {"4column", "5column", "csv"}, optional
        Format of the file. By default CSV if the extension is .csv, and 5 columns otherwise. With 4 columns, the labels of
        models are left out.

    Returns
    -------
    int
        Number of comparisons written.
    """
    file = Path(path)
    kind = _format(file, format) or FIVE
    number = 0

    def counted() -> Iterator[Comparison]:
        nonlocal number
        for comparison in comparisons:
            number += 1
            yield comparison

    with opened_atomically(file) as stream:
        for line in score_lines(counted(), kind):
            stream.write(line.encode())
    return number


def score_lines(comparisons: Iterable[Comparison], format: str) -> Iterator[str]:
    r"""Iterate over the lines of a score file as text, including the header line of CSV.

    Examples
    --------
    >>> list(score_lines([Comparison("ann", "bob", "bob/1", 0.25, "ann/1")], "5column"))
    ['ann ann/1 bob bob/1 0.25\n']
    """
    columns = COLUMNS[FOUR if check_choice("format", format, FORMATS) == FOUR else FIVE]
    if format == CSV:
        yield _csv_line(columns)
    for number, comparison in enumerate(comparisons, start=1):
        entries = [getattr(comparison, column) for column in columns[:-1]]
        if not math.isfinite(comparison.score):
            raise ValueError(f"comparison {number} has the score {comparison.score!r}; leave out comparisons that failed.")
        if format == CSV:
            yield _csv_line([*entries, float(comparison.score)])
            continue
        for column, entry in zip(columns, entries, strict=False):
            if not entry or entry.split() != [entry] or (column == columns[0] and entry.startswith("#")):
                raise ValueError(
                    f"comparison {number} has {column}={entry!r}, which is not allowed in a file whose columns are separated "
                    "by whitespace; rename it, or write CSV."
                )
        yield " ".join([*entries, repr(float(comparison.score))]) + "\n"


def _csv_line(entries: Sequence[object]) -> str:
    """Return entries as a line of CSV, quoted where necessary."""
    line = io.StringIO(newline="")
    csv.writer(line).writerow(entries)
    # lineterminator="\n" would not do: csv would then write an entry with \r without quotes.
    return line.getvalue().removesuffix("\r\n") + "\n"


def _format(file: Path, format: str | None) -> str | None:
    """Return the given format, or the one that the file extension implies."""
    if format is not None:
        return str(check_choice("format", format, FORMATS))
    return CSV if file.suffix.lower() == ".csv" else None


def _plain_lines(name: str, stream: TextIO, kind: str | None) -> Iterator[Comparison]:
    """Iterate over lines whose columns are separated by whitespace."""
    for number, line in enumerate(stream, start=1):
        entries = line.split()
        if not entries or entries[0].startswith("#"):
            continue
        if kind is None:
            if len(entries) not in (4, 5):
                raise ValueError(
                    f"{name}, line {number}: {count(len(entries), 'column')}; "
                    "a score file has 4 or 5, or is CSV (format='csv')."
                )
            kind = FOUR if len(entries) == 4 else FIVE
        if len(entries) != len(COLUMNS[kind]):
            raise ValueError(
                f"{name}, line {number}: {count(len(entries), 'column')} instead of {len(COLUMNS[kind])}; fix this line."
            )
        yield _comparison(name, number, entries, FIELD_COLUMNS[kind])


def _csv_lines(name: str, stream: TextIO) -> Iterator[Comparison]:
    """Iterate over the lines of a CSV file."""
    reader = csv.reader(stream, strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        missing = [column for column in COLUMNS[FOUR] if header.count(column) != 1]
        if missing or header.count("model_label") > 1:
            wanted = ", ".join(COLUMNS[FOUR])
            raise ValueError(
                f"{name}, line 1: the header {header} must have {missing or ['model_label']} exactly once; it needs {wanted}."
            )
        columns = _field_columns(header)
        for entries in reader:
            if not entries:
                continue
            if len(entries) != len(header):
                number = reader.line_num
                raise ValueError(
                    f"{name}, line {number}: {count(len(entries), 'column')} instead of {len(header)}; fix this line."
                )
            yield _comparison(name, reader.line_num, entries, columns)
    except csv.Error as error:
        raise ValueError(f"{name}, line {reader.line_num}: not valid CSV ({error}); fix this line.") from None


def _field_columns(columns: Sequence[str]) -> list[int | None]:
    """Return the column index of each field of a Comparison, or None if it is missing."""
    return [columns.index(field) if field in columns else None for field in Comparison._fields]


FIELD_COLUMNS = {kind: _field_columns(columns) for kind, columns in COLUMNS.items()}


def _comparison(name: str, number: int, entries: Sequence[str], columns: Sequence[int | None]) -> Comparison:
    """Return the comparison of a line whose fields are in these columns."""
    claimed, real, probe, score, model = ("" if column is None else entries[column] for column in columns)
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{name}, line {number}: the score {score!r} is not a finite number; leave out comparisons that failed."
        )
    return Comparison(claimed, real, probe, value, model)
