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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.files import write_atomically
from simtree.io._fields import ARRAY, MAX_BYTES, NUMBER, Fields, ModelFileError

FORMAT = "simtree"
#: Raised by one whenever what is written changes, were it by a new parameter of a model: an older simtree then says that the
#: file is newer, not that it is damaged. All versions from `MIN_VERSION` on are read.
VERSION = 2
#: The oldest version that is read. Version 1 was that of development before 0.1, with other names.
MIN_VERSION = 2
DOCUMENT = "model.json"
# By the name that a file may use.
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("int32", "int64", "float32", "float64")}
# What exceeds these is refused, when it is written and unread when it is read.
MAX_DOCUMENT_BYTES = 1 << 23
MAX_MEMBERS = 1 << 14
MAX_DIMENSIONS = 2
MAX_NESTING = 32
# The end of a file: the end of a zip directory, of 22 bytes, and its comment.
SEAL = b"simtree sha256 "
SEAL_BYTES = len(SEAL) + 64
END_OF_ZIP = struct.Struct("<4s4H2LH")
# A row of a zip directory has at most so many bytes, for our short names.
DIRECTORY_ROW_BYTES = 46 + len("arrays/99999")


def write_document(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a nested mapping of lists, words, numbers, None and arrays of finite numbers to a file, whole or not at all."""
    write_atomically(Path(path), document_bytes(document))


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """What `write_document` writes."""
    arrays: list[NDArray[Any]] = []
    content = _without_arrays(document, arrays)
    described = [{"dtype": array.dtype.name, "shape": list(array.shape)} for array in arrays]
    text = json.dumps({"format": FORMAT, "version": VERSION, "content": content, "arrays": described}, allow_nan=False).encode()
    if len(text) > MAX_DOCUMENT_BYTES or len(arrays) >= MAX_MEMBERS or sum(array.nbytes for array in arrays) > MAX_BYTES // 2:
        raise ValueError(
            f"the model is too large for a model file: {len(text):,} bytes of words and {len(arrays):,} arrays of "
            f"{sum(array.nbytes for array in arrays):,} bytes; at most {MAX_DOCUMENT_BYTES:,}, {MAX_MEMBERS - 1:,} and "
            f"{MAX_BYTES // 2:,} are written. Grow fewer or smaller trees."
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
        if size > MAX_BYTES:
            raise ModelFileError(f"{file} has {size:,} bytes; a model file has at most {MAX_BYTES:,}.")
        data = path.read_bytes()
    try:
        return _read(file, data)
    except ModelFileError:
        raise
    # All that zipfile and json raise for what is not theirs. A recursion that is too deep is a RuntimeError.
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, LookupError, OverflowError, struct.error) as error:
        raise ModelFileError(f"{file} is no model file, or is damaged: {error}.") from None


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
    if n_members > MAX_MEMBERS or size > DIRECTORY_ROW_BYTES * n_members:
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
    if infos[0].file_size > MAX_DOCUMENT_BYTES:
        raise ModelFileError(f"{file} is damaged: its {DOCUMENT} is too large.")
    text = archive.read(DOCUMENT)
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} is no model file of simtree.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{file} is damaged: its version is {version!r}.")
    if version < MIN_VERSION:
        raise ModelFileError(
            f"{file} has file version {version}, which simtree wrote before its first release and no longer reads "
            f"(this one reads {MIN_VERSION} to {VERSION}): fit the model again, or load it with the simtree that wrote it."
        )
    if version > VERSION:
        raise ModelFileError(
            f"{file} was written by a newer simtree (file version {version}; this one reads up to {VERSION}): upgrade simtree."
        )
    if _depth(document) > MAX_NESTING:
        raise ModelFileError(f"{file} is damaged: its {DOCUMENT} is nested too deeply.")
    return document


def _depth(value: Any) -> int:
    """How many lists and tables lie in one another, counted until it is too many."""
    level, depth = [value], 0
    while level and depth <= MAX_NESTING:
        inner = (entry.values() if isinstance(entry, dict) else entry for entry in level if isinstance(entry, dict | list))
        level, depth = [entry for entries in inner for entry in entries], depth + 1
    return depth


def _read_array(file: str, number: int, described: Any, data: bytes) -> NDArray[Any]:
    """One array, if its bytes are as many as its description says."""
    name, shape = (described.get("dtype"), described.get("shape")) if isinstance(described, dict) else (None, None)
    if not isinstance(name, str) or name not in DTYPES or not isinstance(shape, list) or not 0 < len(shape) <= MAX_DIMENSIONS:
        raise ModelFileError(f"{file} is damaged: array {number} is not described.")
    if not all(type(length) is int and 0 <= length <= MAX_BYTES for length in shape):
        raise ModelFileError(f"{file} is damaged: array {number} has the shape {shape}.")
    if len(shape) > 1 and 0 in shape:  # an empty table could claim any width
        raise ModelFileError(f"{file} is damaged: array {number} has the shape {shape}.")
    n_bytes = DTYPES[name].itemsize * math.prod(shape)
    if n_bytes != len(data):
        raise ModelFileError(f"{file} is damaged: array {number} has {len(data):,} bytes instead of {n_bytes:,}.")
    # A copy, because the bytes of a file cannot be written to, and kernels are compiled for arrays that can.
    return np.frombuffer(data, dtype=DTYPES[name]).reshape(shape).astype(np.dtype(name))
