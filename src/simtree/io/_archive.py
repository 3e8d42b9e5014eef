"""The archive of a model file: a document of JSON and arrays, written to one file and validated when it is read.

A file is an uncompressed zip archive with ``model.json``, a nested document of strings and numbers with references to arrays,
and one member of raw little-endian numbers per array. The archive comment, at the end of the file, holds the SHA-256 checksum
of all preceding bytes, so that any damage is detected. Reading a file never runs code, and the memory it takes is proportional
to the size of the file, whatever the file claims. This module does not depend on any estimator.
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
#: Incremented whenever the written content changes, even if only by a new parameter of a model, so that an older simtree
#: reports a newer file, not a damaged one. All versions from `MIN_VERSION` on can be read.
VERSION = 3
#: The oldest version that can be read. Versions 1 and 2 were used in development before 0.1: 1 has other names, 2 has
#: guarantees of another kind.
MIN_VERSION = 3
DOCUMENT = "model.json"
# The dtypes that a file may name.
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("uint8", "int32", "int64", "float32", "float64")}
# Anything beyond these limits is refused, both on writing and, before it is read, on loading.
MAX_DOCUMENT_BYTES = 1 << 23
MAX_MEMBERS = 1 << 14
MAX_DIMENSIONS = 2
MAX_NESTING = 32
# The end of a file: the end record of the zip directory, of 22 bytes, and the comment.
SEAL = b"simtree sha256 "
SEAL_BYTES = len(SEAL) + 64
END_OF_ZIP = struct.Struct("<4s4H2LH")
# Maximum size of an entry of the zip directory, given our short names.
DIRECTORY_ROW_BYTES = 46 + len("arrays/99999")


def write_document(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a nested mapping of lists, strings, numbers, None and arrays of finite numbers to a file, atomically."""
    write_atomically(Path(path), document_bytes(document))


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the bytes that `write_document` writes."""
    arrays: list[NDArray[Any]] = []
    content = _without_arrays(document, arrays)
    described = [{"dtype": array.dtype.name, "shape": list(array.shape)} for array in arrays]
    text = json.dumps({"format": FORMAT, "version": VERSION, "content": content, "arrays": described}, allow_nan=False).encode()
    if len(text) > MAX_DOCUMENT_BYTES or len(arrays) >= MAX_MEMBERS or sum(array.nbytes for array in arrays) > MAX_BYTES // 2:
        raise ValueError(
            f"the model is too large for a model file: {len(text):,} bytes of JSON and {len(arrays):,} arrays of "
            f"{sum(array.nbytes for array in arrays):,} bytes; at most {MAX_DOCUMENT_BYTES:,}, {MAX_MEMBERS - 1:,} and "
            f"{MAX_BYTES // 2:,} are written. Grow fewer or smaller trees."
        )
    return packed([(DOCUMENT, text), *((_member(k), _little_endian(array)) for k, array in enumerate(arrays))])


def packed(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a sealed archive of the members; dates are fixed, so that the same members give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on all systems: a readable file
            archive.writestr(info, data)
        archive.comment = SEAL + b"0" * 64
    return sealed(buffer.getvalue())


def sealed(archive: bytes) -> bytes:
    """Return an archive with the correct checksum in its comment."""
    return archive[:-SEAL_BYTES] + SEAL + _checksum(archive)


def read_document(source: str | Path | bytes) -> Fields:
    """Read a file (or the bytes) that `write_document` wrote; raise `ModelFileError` for anything else."""
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
    # All exceptions that zipfile and json raise for invalid input; a RecursionError is a RuntimeError.
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, LookupError, OverflowError, struct.error) as error:
        raise ModelFileError(f"{file} is not a model file, or is damaged: {error}.") from None


def _member(number: int) -> str:
    return f"arrays/{number}"


def _little_endian(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array).astype(DTYPES[array.dtype.name]).tobytes()


def _without_arrays(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Return the document with references in place of arrays, which are collected, and strings for non-finite numbers."""
    if isinstance(value, np.ndarray):
        if value.dtype.name not in DTYPES:
            raise TypeError(f"an array of {value.dtype} cannot be stored in a model file.")
        if not np.isfinite(value).all():
            raise ValueError(
                "the model holds numbers that are not finite, which cannot be saved; scale the samples and fit again."
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
    """Return the document in the bytes of a file."""
    seal = data[-SEAL_BYTES:]
    if not seal.startswith(SEAL):
        raise ModelFileError(f"{file} is not a model file of simtree, or is truncated.")
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
    """Return the checksum of all bytes before the seal."""
    return hashlib.sha256(memoryview(data)[:-SEAL_BYTES]).hexdigest().encode()


def _check_directory(file: str, data: bytes) -> None:
    """Refuse an archive whose directory is too long or not at the end, before zipfile creates an object per member."""
    end = len(data) - SEAL_BYTES - END_OF_ZIP.size
    if end < 0:
        raise ModelFileError(f"{file} is not a model file of simtree.")
    signature, *_, n_members, size, start, comment = END_OF_ZIP.unpack_from(data, end)
    if signature != b"PK\5\6" or comment != SEAL_BYTES or start + size != end:
        raise ModelFileError(f"{file} is damaged: its end is not that of a model file.")
    if n_members > MAX_MEMBERS or size > DIRECTORY_ROW_BYTES * n_members:
        raise ModelFileError(f"{file} is damaged: its directory is too long.")


def _checked_document(file: str, archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """Return the document of an archive after checking the sizes of all members and the version."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if names[:1] != [DOCUMENT] or names[1:] != [_member(k) for k in range(len(names) - 1)]:
        raise ModelFileError(f"{file} is not a model file: it must hold only {DOCUMENT} and its arrays.")
    if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
        raise ModelFileError(f"{file} is not a model file: it is compressed.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError(f"{file} is damaged: it claims to hold more than it does.")
    if infos[0].file_size > MAX_DOCUMENT_BYTES:
        raise ModelFileError(f"{file} is damaged: its {DOCUMENT} is too large.")
    text = archive.read(DOCUMENT)
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} is not a model file of simtree.")
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
    """Return the nesting depth of lists and mappings, counted up to one beyond the limit."""
    level, depth = [value], 0
    while level and depth <= MAX_NESTING:
        inner = (entry.values() if isinstance(entry, dict) else entry for entry in level if isinstance(entry, dict | list))
        level, depth = [entry for entries in inner for entry in entries], depth + 1
    return depth


def _read_array(file: str, number: int, described: Any, data: bytes) -> NDArray[Any]:
    """Return an array, if the number of its bytes matches its description."""
    name, shape = (described.get("dtype"), described.get("shape")) if isinstance(described, dict) else (None, None)
    if not isinstance(name, str) or name not in DTYPES or not isinstance(shape, list) or not 0 < len(shape) <= MAX_DIMENSIONS:
        raise ModelFileError(f"{file} is damaged: array {number} has no valid description.")
    if not all(type(length) is int and 0 <= length <= MAX_BYTES for length in shape):
        raise ModelFileError(f"{file} is damaged: array {number} has the shape {shape}.")
    if len(shape) > 1 and 0 in shape:  # an empty array could claim any number of columns
        raise ModelFileError(f"{file} is damaged: array {number} has the shape {shape}.")
    n_bytes = DTYPES[name].itemsize * math.prod(shape)
    if n_bytes != len(data):
        raise ModelFileError(f"{file} is damaged: array {number} has {len(data):,} bytes instead of {n_bytes:,}.")
    # A copy, because arrays on bytes are read-only and kernels are compiled for writeable arrays.
    return np.frombuffer(data, dtype=DTYPES[name]).reshape(shape).astype(np.dtype(name))
