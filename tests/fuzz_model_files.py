"""Damaged and forged model files, by the thousand: each is refused, or is a model that works.

As a program it makes and loads so many of them, in a process that may take one gigabyte more than it has, and prints what
became of them: ``python tests/fuzz_model_files.py --n 100000 --seed 1``.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import io
import json
import resource
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from simtree import ModelFileError
from simtree.io._archive import DOCUMENT, packed, read_document, sealed
from simtree.models._persistence import model_from_state

FILES = Path(__file__).parent / "model_files"
GIGABYTE = 1 << 30
# Seconds for a hundred files, after which they are taken to hang.
PATIENCE = 60
NUMBERS = [0, 1, -1, 2, 3, -2, 7, 52, 53, 255, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 53, (1 << 63) - 1, 1 << 64]
NUMBERS += [10**400, 0.5, -0.5, 1e-300, 1e70, 1e308, -1e308]
OTHERS = [None, True, False, "", "x", "cart", "llr", "cosine", "Pipeline", [], {}, [[]], {"$array": 0}, {"$array": 999}]
OTHERS += [{"$array": -1}, {"$array": "0"}, {"$number": "nan"}, {"$number": "inf"}, {"$number": 3}, "é" * 5000]
OTHERS += [float("nan"), float("inf")]  # as JSON does not know them, but Python's does


class Original:
    """A good file, taken apart."""

    def __init__(self, path):
        self.name = path.stem
        self.data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            self.members = [(name, archive.read(name)) for name in archive.namelist()]
        self.document = json.loads(self.members[0][1])
        self.scores = used(model_from_state(read_document(self.data)), whole=True)


def used(model, *, whole):
    """Scores of a model, as a user would ask for them."""
    few = model.n_features_in_ > 1000  # as some forged models of plain distances have
    points = np.random.default_rng(0).normal(size=(10 if few else 64, model.n_features_in_))
    pairs = np.stack([points[:5], points[5:10]], axis=1)
    scores = model.pair_score(pairs)
    assert np.isfinite(scores).all(), "scores that are not finite"
    model.predict(pairs)
    if hasattr(model, "calibration_"):
        model.predict_proba(pairs)
    if whole:  # so many pairs that a shortcut is taken
        scores = np.concatenate([scores, model.top_k(points, points, k=2)[0].ravel(), model.pairwise_score(points).ravel()])
        assert np.isfinite(scores).all(), "scores that are not finite"
    return scores


# Damage: bytes that are not what they were. All of it must be noticed.


def flipped(rng, data):
    """Some bits are others."""
    damaged = bytearray(data)
    for at in rng.integers(len(damaged), size=rng.integers(1, 4)):
        damaged[at] ^= 1 << rng.integers(8)
    return bytes(damaged)


def cut(rng, data):
    """The end, the beginning or a part in the middle is missing."""
    start, stop = sorted(rng.integers(len(data) + 1, size=2).tolist())
    return [data[:start], data[start:], data[:start] + data[stop:]][rng.integers(3)]


def overwritten(rng, data):
    """A part is zeros, noise, or another part."""
    start, stop, other = sorted(rng.integers(len(data) + 1, size=3).tolist())
    part = [bytes(stop - start), rng.bytes(stop - start), data[other : other + stop - start]][rng.integers(3)]
    return data[:start] + part + data[stop:]


def lengthened(rng, data):
    """Something is put in."""
    at = int(rng.integers(len(data) + 1))
    return data[:at] + rng.bytes(rng.integers(1, 100)) + data[at:]


DAMAGES = [flipped, cut, overwritten, lengthened]


# Forgery: changes by somebody who makes all checksums right again.


def forged_archive(rng, original):
    """Bytes of the zip archive, above all of its directory, are others."""
    data = original.data
    directory = data.rindex(b"PK\5\6") - 46 * len(original.members)
    damaged = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(directory, len(data) - 79) if rng.random() < 0.7 else rng.integers(len(data) - 79))
        damaged[at] = rng.choice([0, 1, 255, damaged[at] ^ (1 << rng.integers(8))])
    return sealed(bytes(damaged))


def forged_members(rng, original):
    """Members are missing, doubled, exchanged, renamed, or others."""
    members = list(original.members)
    one, other = rng.integers(len(members), size=2)
    kind = rng.integers(6)
    if kind == 0:
        members.pop(one)
    elif kind == 1:
        members.append((f"arrays/{len(members) - 1}", members[one][1]))
    elif kind == 2:
        (a, data_a), (b, data_b) = members[one], members[other]
        members[one], members[other] = (a, data_b), (b, data_a)
    elif kind == 3:
        members[one] = (["../../x", "arrays/-1", "arrays/0", "", "model.json"][rng.integers(5)], members[one][1])
    elif kind == 4:
        members[one] = (members[one][0], rng.bytes(rng.integers(50)))
    else:
        members.reverse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        return packed(members)


def places(value, path=()):
    """Where something is in a document."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield (*path, key)
        yield from places(entry, (*path, key))


def change_document(rng, document):
    """One entry is another, missing, doubled, or buried."""
    path = list(places(document))
    *above, key = path[rng.integers(len(path))]
    holder = document
    for name in above:
        holder = holder[name]
    value, kind = holder[key], rng.integers(8)
    if kind == 0 and isinstance(holder, dict):
        del holder[key]
    elif kind == 1 and isinstance(value, list):
        value.append(copy.deepcopy(value[-1]) if value else 0)
    elif kind == 2 and isinstance(value, list | dict) and value:
        value.pop(next(iter(value)) if isinstance(value, dict) else -1)
    elif kind == 3:
        for _ in range(rng.integers(1, 60)):
            value = [value] if rng.random() < 0.5 else {"class": value}
        holder[key] = value
    elif kind == 4 and type(value) in (int, float):
        holder[key] = value + int(rng.integers(-3, 4))
    elif kind == 5:
        elsewhere = document
        for name in path[rng.integers(len(path))]:
            elsewhere = elsewhere[name]
        holder[key] = copy.deepcopy(elsewhere)
    else:
        choices = NUMBERS if type(value) in (int, float) and rng.random() < 0.8 else OTHERS
        holder[key] = copy.deepcopy(choices[rng.integers(len(choices))])


def change_array(rng, document, members):
    """Numbers of an array, or its type or shape, are others."""
    number = int(rng.integers(1, len(members)))
    described = document["arrays"][number - 1]
    name, data = members[number]
    array = np.frombuffer(data, dtype=described["dtype"]).copy()
    kind = rng.integers(7)
    if array.dtype.kind == "f":
        special = np.array([v for v in NUMBERS if abs(v) < float(np.finfo(array.dtype).max)], dtype=array.dtype)
    else:
        special = np.array(
            [v for v in NUMBERS if type(v) is int and abs(v) <= int(np.iinfo(array.dtype).max)], dtype=array.dtype
        )
    if kind <= 2 and array.size:
        for at in rng.integers(len(array), size=rng.integers(1, 4)):
            with np.errstate(all="ignore"):
                array[at] = [rng.choice(special), rng.choice(array), -array[at], array[at] + 1][rng.integers(4)]
    elif kind == 3 and array.size:
        array[rng.integers(len(array))] = rng.choice([np.nan, np.inf, -np.inf]) if array.dtype.kind == "f" else -(2**31)
    elif kind == 4:
        rng.shuffle(array)
    elif kind == 5:
        array = array[: rng.integers(len(array) + 1)] if rng.random() < 0.5 else np.append(array, array[:1])
        described["shape"] = [len(array)] if len(described["shape"]) == 1 else [1, len(array)]
    else:
        described["dtype"] = ["int32", "int64", "float32", "float64"][rng.integers(4)]
        array = array.astype(described["dtype"]) if rng.random() < 0.5 else array
    members[number] = (name, array.tobytes())


def forged_content(rng, original):
    """The document, or arrays, say something else; everything around them is as it must be."""
    document, members = copy.deepcopy(original.document), list(original.members)
    for _ in range(1 if rng.random() < 0.7 else rng.integers(2, 5)):
        try:
            if rng.random() < 0.5 or len(members) == 1:
                change_document(rng, document if rng.random() < 0.2 else document["content"])
            else:
                change_array(rng, document, members)
        except (LookupError, TypeError, AttributeError, ValueError):
            pass  # an earlier change left nothing here to change
    members[0] = (DOCUMENT, json.dumps(document).encode())
    return packed(members)


def outcome(rng, original):
    """Make a bad file of a good one, load it, and say what became of it; whatever should not happen raises."""
    if rng.random() < 0.2:
        data, kind = DAMAGES[rng.integers(len(DAMAGES))](rng, original.data), "damaged"
    else:
        forge = [forged_archive, forged_members, forged_content][rng.choice(3, p=[0.15, 0.1, 0.75])]
        data, kind = forge(rng, original), forge.__name__.replace("_", " ")
    if data == original.data:
        return f"{kind}, unchanged"
    try:
        model = model_from_state(read_document(data))
    except ModelFileError:
        return f"{kind}, refused"
    assert kind != "damaged", "damage that went unnoticed"
    whole = bool(rng.random() < 0.1)
    scores = used(model, whole=whole)
    if kind == "forged archive":  # bytes of the archive that say nothing, such as dates
        np.testing.assert_array_equal(scores, original.scores[: len(scores)])
    return f"{kind}, works"


def run(n, seed):
    """What became of so many files; the process may not grow by more than a gigabyte."""
    warnings.simplefilter("ignore", RuntimeWarning)  # of overflows, of numbers that nobody has
    originals = [Original(path) for path in sorted(FILES.glob("version_*/*.simtree"))]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + GIGABYTE, resource.RLIM_INFINITY))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, start = Counter(), time.perf_counter()
    for number in range(n):
        if number % 100 == 0:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
        original = originals[number % len(originals)]
        try:
            found[outcome(np.random.default_rng([seed, number]), original)] += 1
        except BaseException as error:
            raise AssertionError(f"file {number} of seed {seed}, made of {original.name}: {error!r}") from error
    faulthandler.cancel_dump_traceback_later()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": round(time.perf_counter() - start, 1), "grown_megabytes": round(grown / 1024), **sorted_by_name(found)}


def sorted_by_name(counts):
    return dict(sorted(counts.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(run(options.n, options.seed), indent=1))
