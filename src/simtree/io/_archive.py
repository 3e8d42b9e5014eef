"""Arrays and JSON to one file and back, checked before anything is believed; knows no estimator.

A file is a zip archive without compression: ``model.json``, a nested document of words and numbers in which an array is a
reference, and one member of raw little-endian numbers for each array. Its comment, the last bytes of the file, is the SHA-256
of all bytes before it, so that no damage goes unnoticed. Nothing in it can run code, and the memory that reading it takes is in
proportion to what it holds, whatever it claims.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.files import write_atomically

FORMAT = "simtree"
#: Raised by one whenever what is written changes, were it by a new parameter of a model: an older simtree then says that the
#: file is newer, not that it is damaged. All versions up to it are read.
VERSION = 1
DOCUMENT = "model.json"
# A name in a document that stands for an array, or for a number that JSON has no word for.
ARRAY = "$array"
NUMBER = "$number"
UNUSUAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# By the name that a file may use.
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("int32", "int64", "float32", "float64")}
# What exceeds these is refused, when it is written and unread when it is read.
MOST_BYTES = 1 << 30
MOST_DOCUMENT_BYTES = 1 << 23
MOST_MEMBERS = 1 << 14
MOST_DIMENSIONS = 2
DEEPEST = 32
# The end of a file: the end of a zip directory, of 22 bytes, and its comment.
SEAL = b"simtree sha256 "
SEAL_BYTES = len(SEAL) + 64
END_OF_ZIP = struct.Struct("<4s4H2LH")
# A row of a zip directory has at most so many bytes, for our short names.
DIRECTORY_ROW_BYTES = 46 + len("arrays/99999")


class ModelFileError(ValueError):
    """A file is no model file, is damaged, or was written by a newer simtree."""


def write_document(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a nested mapping of lists, words, numbers, None and arrays of finite numbers to a file, whole or not at all."""
    write_atomically(Path(path), document_bytes(document))


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """What `write_document` writes."""
    arrays: list[NDArray[Any]] = []
    content = _without_arrays(document, arrays)
    described = [{"dtype": array.dtype.name, "shape": list(array.shape)} for array in arrays]
    text = json.dumps({"format": FORMAT, "version": VERSION, "content": content, "arrays": described}, allow_nan=False).encode()
    if (
        len(text) > MOST_DOCUMENT_BYTES
        or len(arrays) >= MOST_MEMBERS
        or sum(array.nbytes for array in arrays) > MOST_BYTES // 2
    ):
        raise ValueError(
            f"the model is too large for a model file: {len(text):,} bytes of words and {len(arrays):,} arrays of "
            f"{sum(array.nbytes for array in arrays):,} bytes; at most {MOST_DOCUMENT_BYTES:,}, {MOST_MEMBERS - 1:,} and "
            f"{MOST_BYTES // 2:,} are written. Grow fewer or smaller trees."
        )
    return packed([(DOCUMENT, text), *((_member(k), _little_endian(array)) for k, array in enumerate(arrays))])


def packed(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A sealed archive of some members. The same members are the same bytes: dates are fixed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on all machines: a file that may be read
            archive.writestr(info, data)
        archive.comment = SEAL + b"0" * 64
    return sealed(buffer.getvalue())


def sealed(archive: bytes) -> bytes:
    """An archive with the right checksum in its comment."""
    return archive[:-SEAL_BYTES] + SEAL + _checksum(archive)


def read_document(source: str | Path | bytes) -> Fields:
    """What `write_document` wrote (to a file, or these bytes); raises `ModelFileError` for anything else."""
    if isinstance(source, bytes):
        file, data = "the model file", source
    else:
        path = Path(source)
        file, size = path.name, path.stat().st_size
        if size > MOST_BYTES:
            raise ModelFileError(f"{file} has {size:,} bytes; a model file has at most {MOST_BYTES:,}.")
        data = path.read_bytes()
    try:
        return _read(file, data)
    except ModelFileError:
        raise
    # All that zipfile and json raise for what is not theirs. A recursion that is too deep is a RuntimeError.
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, LookupError, OverflowError, struct.error) as error:
        raise ModelFileError(f"{file} is no model file, or is damaged: {error}.") from None


@dataclass(frozen=True)
class Fields:
    """A part of a document, whose entries are asked for by name and kind.

    Each method raises `ModelFileError` with the name of the file and of the entry if it is missing or is not what it must be.
    """

    file: str
    place: str
    content: Mapping[str, Any]
    arrays: Sequence[NDArray[Any]]

    def fail(self, name: str, what: str) -> ModelFileError:
        """The error that an entry is not what it must be."""
        return ModelFileError(f"{self.file} is damaged: {self.place}{name} {what}.")

    def get(self, name: str) -> Any:
        """An entry as it is; numbers that JSON has no word for are numbers."""
        if name not in self.content:
            raise self.fail(name, "is missing")
        return self._usual(name, self.content[name])

    def has(self, name: str) -> bool:
        """Whether there is such an entry, and it is not None."""
        return self.content.get(name) is not None

    def part(self, name: str) -> Fields:
        """An entry that is a document itself."""
        return self._part(name, self.get(name))

    def parts(self, name: str, most: int) -> list[Fields]:
        """An entry that is a list of documents."""
        values = self.items(name, most)
        return [self._part(f"{name}[{k}]", value) for k, value in enumerate(values)]

    def items(self, name: str, most: int) -> list[Any]:
        """An entry that is a list."""
        values = self.get(name)
        if not isinstance(values, list) or len(values) > most:
            raise self.fail(name, f"must be a list of at most {most:,} entries")
        return [self._usual(name, value) for value in values]

    def word(self, name: str, choices: Iterable[str] | None = None) -> str:
        """An entry that is a word, one of some if they are given."""
        value = self.get(name)
        known = None if choices is None else tuple(choices)
        if not isinstance(value, str) or (known is not None and value not in known):
            raise self.fail(name, "must be a word" if known is None else f"must be one of {', '.join(map(repr, known))}")
        return value

    def words(self, name: str, most: int) -> list[str]:
        """An entry that is a list of words."""
        values = self.items(name, most)
        if not all(isinstance(value, str) for value in values):
            raise self.fail(name, "must be a list of words")
        return values

    def integer(self, name: str, low: int, high: int) -> int:
        """An entry that is a whole number in a range."""
        value = self.get(name)
        if type(value) is not int or not low <= value <= high:
            raise self.fail(name, f"must be a whole number from {low:,} to {high:,}")
        return value

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """An entry that is a number in a range."""
        value = self.get(name)
        if not _is_number(value) or not low <= value <= high:
            raise self.fail(name, f"must be a number from {low:g} to {high:g}")
        return float(value)

    def numbers(self, name: str, length: int) -> NDArray[np.float64]:
        """An entry that is a list of numbers, which need not be finite."""
        values = self.items(name, length)
        if len(values) != length or not all(map(_is_number, values)):
            raise self.fail(name, f"must be a list of {length:,} numbers")
        return np.array(values, dtype=np.float64)

    def flag(self, name: str) -> bool:
        """An entry that is true or false."""
        value = self.get(name)
        if type(value) is not bool:
            raise self.fail(name, "must be true or false")
        return value

    def array(
        self, name: str, dtype: str, shape: tuple[int | None, ...], *, low: float = -math.inf, high: float = math.inf
    ) -> NDArray[Any]:
        """An entry that is an array of a type and shape (None: any length), all of whose numbers are finite and in a range."""
        value = self.get(name)
        number = value.get(ARRAY) if isinstance(value, dict) else None
        if type(number) is not int or not 0 <= number < len(self.arrays):
            raise self.fail(name, "must be an array that the file holds")
        array = self.arrays[number]
        if array.dtype.name != dtype or array.ndim != len(shape):
            raise self.fail(name, f"must be an array of {dtype} with {len(shape)} dimensions")
        if any(wanted is not None and length != wanted for length, wanted in zip(array.shape, shape, strict=True)):
            raise self.fail(name, f"has the shape {array.shape}, which does not fit the rest")
        if array.size and not (low <= array.min() and array.max() <= high and np.isfinite(array).all()):
            raise self.fail(name, f"must hold finite numbers from {low:g} to {high:g}")
        return array

    def lengths(self, name: str, n: int | None, total: int | None = None, *, low: int = 0) -> NDArray[np.int64]:
        """An entry that is an array of lengths of parts, which sum to a total."""
        found = self.array(name, "int64", (n,), low=low, high=MOST_BYTES)
        if total is not None and int(found.sum()) != total:
            raise self.fail(name, f"must sum to {total:,}")
        return found

    def _part(self, name: str, value: Any) -> Fields:
        if not isinstance(value, dict):
            raise self.fail(name, "must be a table of names")
        return Fields(self.file, f"{self.place}{name}.", value, self.arrays)

    def _usual(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict) or NUMBER not in value:
            return value
        word = value[NUMBER]
        if not isinstance(word, str) or word not in UNUSUAL:
            raise self.fail(name, "must be a number")
        return UNUSUAL[word]


def _is_number(value: Any) -> bool:
    """Whether it is a number that float64 can hold; JSON knows whole numbers of any size."""
    return type(value) is float or (type(value) is int and abs(value) < 1 << 63)


def _member(number: int) -> str:
    return f"arrays/{number}"


def _little_endian(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array).astype(DTYPES[array.dtype.name]).tobytes()


def _without_arrays(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """The document with references for arrays, which are collected, and words for numbers that JSON does not know."""
    if isinstance(value, np.ndarray):
        if value.dtype.name not in DTYPES:
            raise TypeError(f"an array of {value.dtype} has no place in a model file.")
        if not np.isfinite(value).all():
            raise ValueError(
                "the model holds numbers that are not finite, which cannot be saved; scale the points and fit again."
            )
        arrays.append(value)
        return {ARRAY: len(arrays) - 1}
    if isinstance(value, Mapping):
        return {str(name): _without_arrays(entry, arrays) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(entry, arrays) for entry in value]
    plain = value.item() if isinstance(value, np.generic) else value
    return {NUMBER: str(plain)} if isinstance(plain, float) and not math.isfinite(plain) else plain


def _read(file: str, data: bytes) -> Fields:
    """The document of the bytes of a file."""
    seal = data[-SEAL_BYTES:]
    if not seal.startswith(SEAL):
        raise ModelFileError(f"{file} is no model file of simtree, or a part of it is missing.")
    if _checksum(data) != seal[len(SEAL) :]:
        raise ModelFileError(f"{file} is damaged: its checksum does not match; take another copy of it.")
    _check_directory(file, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        document = _checked_document(file, archive, len(data))
        described = document.get("arrays")
        if not isinstance(described, list) or len(described) != len(archive.infolist()) - 1:
            raise ModelFileError(f"{file} is damaged: it does not hold the arrays that it lists.")
        arrays = [_read_array(file, k, entry, archive.read(_member(k))) for k, entry in enumerate(described)]
    if not isinstance(document.get("content"), dict):
        raise ModelFileError(f"{file} is damaged: it has no content.")
    return Fields(file, "", document["content"], arrays)


def _checksum(data: bytes) -> bytes:
    """The checksum of all that comes before the seal."""
    return hashlib.sha256(memoryview(data)[:-SEAL_BYTES]).hexdigest().encode()


def _check_directory(file: str, data: bytes) -> None:
    """Refuse an archive whose directory of members, of which objects are made, is too long or not where it must be."""
    end = len(data) - SEAL_BYTES - END_OF_ZIP.size
    if end < 0:
        raise ModelFileError(f"{file} is no model file of simtree.")
    signature, *_, n_members, size, start, comment = END_OF_ZIP.unpack_from(data, end)
    if signature != b"PK\5\6" or comment != SEAL_BYTES or start + size != end:
        raise ModelFileError(f"{file} is damaged: it does not end as a model file does.")
    if n_members > MOST_MEMBERS or size > DIRECTORY_ROW_BYTES * n_members:
        raise ModelFileError(f"{file} is damaged: its directory is too long.")


def _checked_document(file: str, archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """The document of an archive, if the sizes of all members can be true and its version is known."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if names[:1] != [DOCUMENT] or names[1:] != [_member(k) for k in range(len(names) - 1)]:
        raise ModelFileError(f"{file} is no model file: it does not hold {DOCUMENT} and its arrays alone.")
    if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
        raise ModelFileError(f"{file} is no model file: it is compressed.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError(f"{file} is damaged: it claims to hold more than it does.")
    if infos[0].file_size > MOST_DOCUMENT_BYTES:
        raise ModelFileError(f"{file} is damaged: its {DOCUMENT} is too large.")
    text = archive.read(DOCUMENT)
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} is no model file of simtree.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{file} is damaged: its version is {version!r}.")
    if version > VERSION:
        raise ModelFileError(
            f"{file} was written by a newer simtree (file version {version}; this one reads up to {VERSION}): upgrade simtree."
        )
    if _depth(document) > DEEPEST:
        raise ModelFileError(f"{file} is damaged: its {DOCUMENT} is nested too deeply.")
    return document


def _depth(value: Any) -> int:
    """How many lists and tables lie in one another, counted until it is too many."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        inner = (entry.values() if isinstance(entry, dict) else entry for entry in level if isinstance(entry, dict | list))
        level, depth = [entry for entries in inner for entry in entries], depth + 1
    return depth


def _read_array(file: str, number: int, described: Any, data: bytes) -> NDArray[Any]:
    """One array, if its bytes are as many as its description says."""
    name, shape = (described.get("dtype"), described.get("shape")) if isinstance(described, dict) else (None, None)
    if not isinstance(name, str) or name not in DTYPES or not isinstance(shape, list) or not 0 < len(shape) <= MOST_DIMENSIONS:
        raise ModelFileError(f"{file} is damaged: array {number} is not described.")
    if not all(type(length) is int and 0 <= length <= MOST_BYTES for length in shape):
        raise ModelFileError(f"{file} is damaged: array {number} has the shape {shape}.")
    if len(shape) > 1 and 0 in shape:  # an empty table could claim any width
        raise ModelFileError(f"{file} is damaged: array {number} has the shape {shape}.")
    n_bytes = DTYPES[name].itemsize * math.prod(shape)
    if n_bytes != len(data):
        raise ModelFileError(f"{file} is damaged: array {number} has {len(data):,} bytes instead of {n_bytes:,}.")
    # A copy, because the bytes of a file cannot be written to, and kernels are compiled for arrays that can.
    return np.frombuffer(data, dtype=DTYPES[name]).reshape(shape).astype(np.dtype(name))
