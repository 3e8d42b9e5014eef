"""The container of model files: what is written comes back, and what is not as it must be is refused in a sentence."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from simtree import ModelFileError
from simtree.io import _archive as persistence
from simtree.io._archive import DOCUMENT, document_bytes, packed, read_document, sealed, write_document
from simtree.io._fields import ARRAY

CONTENT = {"word": "é", "none": None, "list": [1, 2.5, True], "array": np.arange(6.0).reshape(2, 3), "part": {"n": -3}}
NUMBERS = st.integers(-(2**62), 2**62) | st.floats() | st.booleans() | st.none() | st.text(max_size=5)
DOCUMENTS = st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=4), max_leaves=8)


def parsed(**changes):
    """A good file's members, with some entries of its JSON changed."""
    with zipfile.ZipFile(io.BytesIO(document_bytes(CONTENT))) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    document = {**json.loads(members[0][1]), **changes}
    return [(DOCUMENT, json.dumps(document).encode()), *members[1:]]


def test_a_document_comes_back():
    fields = read_document(document_bytes(CONTENT))
    assert fields.string("word") == "é"
    assert not fields.has("none")
    assert fields.items("list", 3) == [1, 2.5, True]
    assert fields.part("part").integer("n", -5, 0) == -3
    np.testing.assert_array_equal(fields.array("array", "float64", (2, None)), CONTENT["array"], strict=True)


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda name: name[0] != "$"), DOCUMENTS, max_size=5))
def test_any_words_and_numbers_come_back(document):
    fields = read_document(document_bytes(document))
    for name, value in document.items():
        if not isinstance(value, list):
            assert fields.get(name) == value or (value != value and fields.get(name) != fields.get(name))


@given(npst.arrays(st.sampled_from(["int32", "int64"]), npst.array_shapes(max_dims=2, max_side=5)))
def test_any_array_comes_back_and_can_be_written_to(array):
    found = read_document(document_bytes({"a": array})).array("a", array.dtype.name, array.shape)
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.c_contiguous
    assert found.flags.writeable


def test_arrays_of_another_order_of_bytes_and_of_memory_come_back():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3)).astype(">f8")
    found = read_document(document_bytes({"a": array})).array("a", "float64", (2, 3))
    np.testing.assert_array_equal(found, array)


def test_the_same_document_is_the_same_file():
    assert document_bytes(CONTENT) == document_bytes(dict(CONTENT))


def test_a_file_is_a_zip_archive_that_others_can_open(tmp_path):
    write_document(tmp_path / "m.simtree", CONTENT)
    with zipfile.ZipFile(tmp_path / "m.simtree") as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read(DOCUMENT))["content"]["word"] == "é"
        assert np.frombuffer(archive.read("arrays/0"), "<f8").tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([1 + 2j]), np.array([object()]), np.array([np.nan]), np.array([-np.inf])]
)
def test_what_has_no_place_in_a_file_is_not_written(array):
    with pytest.raises((ValueError, TypeError), match=r"cannot be stored in a model file|not finite"):
        document_bytes({"a": array})


def test_a_model_that_is_too_large_is_not_written(monkeypatch):
    monkeypatch.setattr(persistence, "MAX_DOCUMENT_BYTES", 1000)
    with pytest.raises(ValueError, match="too large for a model file"):
        document_bytes({"word": "x" * 1000})


REFUSED = {
    "nothing": (b"", "not a model file"),
    "a pickle": (b"\x80\x04\x95" + bytes(200), "not a model file"),
    "a zip archive of somebody else": (zipfile, "not a model file"),
    "a file without its end": (document_bytes(CONTENT)[:-1], "not a model file"),
    "a file without its beginning": (document_bytes(CONTENT)[1:], "checksum"),
    "no zip archive": (sealed(bytes(500)), "its end is not that of a model file"),
    "a newer version": (
        packed(parsed(version=4)),
        r"written by a newer simtree \(file version 4; this one reads up to 3\): upgrade",
    ),
    "the version before the first release": (
        packed(parsed(version=1)),
        r"has file version 1, which simtree wrote before its first release and no longer reads \(this one reads 3 to 3\): fit",
    ),
    "version 0": (packed(parsed(version=0)), "its version is 0"),
    "a version that is no number": (packed(parsed(version="1")), "its version is '1'"),
    "another format": (packed(parsed(format="other")), "not a model file of simtree"),
    "no content": (packed(parsed(content=3)), "no content"),
    "JSON that is none": (packed([(DOCUMENT, b"{"), *parsed()[1:]]), "damaged"),
    "JSON that is a list": (packed([(DOCUMENT, b"[]"), *parsed()[1:]]), "not a model file"),
    "JSON that is too deep": (packed([(DOCUMENT, b"[" * 100_000), *parsed()[1:]]), "damaged"),
    "JSON that is rather deep": (packed(parsed(content=json.loads('{"a":' * 40 + "1" + "}" * 40))), "nested too deeply"),
    "JSON of an endless number": (packed([(DOCUMENT, b"1" * 100_000), *parsed()[1:]]), "damaged"),
    "JSON that is not UTF-8": (packed([(DOCUMENT, b"\xff\xfe\xfd"), *parsed()[1:]]), "damaged"),
    "an array that is missing": (packed(parsed()[:-1]), "does not hold the arrays"),
    "an array too many": (packed([*parsed(), ("arrays/1", b"")]), "does not hold the arrays"),
    "another member": (packed([*parsed(), ("code.py", b"")]), "it must hold only model.json and its arrays"),
    "a member that is there twice": (None, "it must hold only model.json and its arrays"),
    "an array that is not listed": (packed(parsed(arrays=[])), "does not hold the arrays"),
    "an array that is not described": (packed(parsed(arrays=[None])), "has no valid description"),
    "an array of objects": (packed(parsed(arrays=[{"dtype": "object", "shape": [6]}])), "has no valid description"),
    "an array with an unhashable type": (packed(parsed(arrays=[{"dtype": [], "shape": [6]}])), "has no valid description"),
    "an array of three dimensions": (
        packed(parsed(arrays=[{"dtype": "float64", "shape": [1, 2, 3]}])),
        "has no valid description",
    ),
    "an array of negative lengths": (packed(parsed(arrays=[{"dtype": "float64", "shape": [-2, -3]}])), "has the shape"),
    "an array of huge length": (packed(parsed(arrays=[{"dtype": "float64", "shape": [1 << 60, 3]}])), "has the shape"),
    "an array that is longer than it is": (packed(parsed(arrays=[{"dtype": "float64", "shape": [1 << 20, 3]}])), "instead of"),
    "an array that is empty but wide": (packed(parsed(arrays=[{"dtype": "float64", "shape": [0, 1 << 29]}])), "has the shape"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_good_file_is_refused(name, tmp_path):
    data, message = REFUSED[name]
    if data is zipfile:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(DOCUMENT, "{}")
        data = buffer.getvalue()
    elif data is None:
        data = packed([*parsed(), parsed()[0]])
    (tmp_path / "m.simtree").write_bytes(data)
    with pytest.raises(ModelFileError, match=message) as caught:
        read_document(tmp_path / "m.simtree")
    assert str(caught.value).startswith("m.simtree")
    assert str(caught.value).endswith(".")


def test_a_compressed_archive_is_refused():
    """A few bytes could be many when they are unpacked."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(DOCUMENT), b" " * 10_000_000, compress_type=zipfile.ZIP_DEFLATED)
        archive.comment = persistence.SEAL + b"0" * 64
    assert len(buffer.getvalue()) < 100_000
    with pytest.raises(ModelFileError, match="compressed"):
        read_document(sealed(buffer.getvalue()))


def test_a_directory_that_claims_too_many_members_is_refused():
    """Objects are made of its rows before they can be looked at."""
    data = document_bytes(CONTENT)
    end = len(data) - persistence.SEAL_BYTES - persistence.END_OF_ZIP.size
    fields = list(persistence.END_OF_ZIP.unpack_from(data, end))
    fields[3] = fields[4] = persistence.MAX_MEMBERS + 1
    with pytest.raises(ModelFileError, match="directory is too long"):
        read_document(sealed(data[:end] + persistence.END_OF_ZIP.pack(*fields) + data[end + persistence.END_OF_ZIP.size :]))


def test_a_member_that_claims_more_than_there_is_is_refused():
    data = bytearray(document_bytes(CONTENT))
    entry = data.rindex(b"PK\1\2")
    struct.pack_into("<2L", data, entry + 20, 1 << 31, 1 << 31)
    with pytest.raises(ModelFileError, match="more than it does"):
        read_document(sealed(bytes(data)))


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "m.simtree").open("wb") as file:
        file.truncate(persistence.MAX_BYTES + 1)  # takes no room on the disk
    with pytest.raises(ModelFileError, match="has at most"):
        read_document(tmp_path / "m.simtree")


@pytest.mark.parametrize("at", range(0, len(document_bytes(CONTENT)), 7))
def test_any_damage_is_noticed(at):
    data = bytearray(document_bytes(CONTENT))
    data[at] ^= 16
    with pytest.raises(ModelFileError):
        read_document(bytes(data))


WRONG = {
    "missing": lambda f: f.get("other"),
    "no part": lambda f: f.part("word"),
    "no parts": lambda f: f.parts("list", 5),
    "no list": lambda f: f.items("word", 5),
    "a long list": lambda f: f.items("list", 2),
    "no word": lambda f: f.string("none"),
    "no known word": lambda f: f.string("word", ("a", "b")),
    "no words": lambda f: f.strings("list", 5),
    "no integer": lambda f: f.integer("word", 0, 5),
    "true is no integer": lambda f: f.integer("true", 0, 5),
    "an integer out of range": lambda f: f.integer("huge", 0, 5),
    "no number": lambda f: f.number("word"),
    "a number out of range": lambda f: f.number("part_of", 0.0, 0.25),
    "nan": lambda f: f.number("nan"),
    "a number beyond float64": lambda f: f.number("huge"),
    "no numbers": lambda f: f.numbers("list", 3),
    "no flag": lambda f: f.flag("word"),
    "no array": lambda f: f.array("word", "float64", (None,)),
    "an array that is not there": lambda f: f.array("nowhere", "float64", (None,)),
    "another type": lambda f: f.array("array", "float32", (2, 3)),
    "other dimensions": lambda f: f.array("array", "float64", (6,)),
    "another shape": lambda f: f.array("array", "float64", (3, None)),
    "too low": lambda f: f.array("array", "float64", (2, 3), low=1),
    "too high": lambda f: f.array("array", "float64", (2, 3), high=4),
    "another sum": lambda f: f.lengths("whole", 2, 4),
    "an unknown number": lambda f: f.get("strange"),
}


@pytest.mark.parametrize("name", WRONG)
def test_entries_that_are_not_as_they_must_be_are_named(name):
    more = {"true": True, "huge": 10**400, "nan": np.nan, "part_of": 0.5, "whole": np.array([1, 2]), "nowhere": {ARRAY: 99}}
    fields = read_document(document_bytes({**CONTENT, **more, "strange": {"$number": "pi"}}))
    with pytest.raises(ModelFileError, match=r"the model file is damaged: [^ ]+ (is|must|has)"):
        WRONG[name](fields)


@pytest.mark.slow
def test_forged_files_are_refused_or_work():
    """Five of each model, in a process of its own that may take a gigabyte more than it has; `make test` makes thousands."""
    program = Path(__file__).parents[1] / "fuzz_model_files.py"
    run = subprocess.run([sys.executable, program, "--n", "165"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found.pop("grown_megabytes") < 1000
    found.pop("seconds")
    assert sum(count for name, count in found.items() if name.endswith("refused")) > 105
    # All kinds of change were made, and some that matter to nobody or make another good model went through.
    assert {f"{kind}, refused" for kind in ("damaged", "forged archive", "forged members", "forged content")} <= set(found)
    assert found["forged content, works"] > 3
    assert "damaged, works" not in found
