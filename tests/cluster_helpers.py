"""Models and chunks that misbehave on a cluster; workers import this module, which test modules do not allow."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path

import numpy as np

from simtree import CutSplitter, DistanceSimilarity


def read_chunk(chunk, folder):
    """Return the chunk, and leave a file for each time that it is read."""
    (Path(folder) / f"{float(np.asarray(chunk).sum())!r} {uuid.uuid4().hex}").touch()
    return chunk


def die_once(flag):
    """Kill the process that asks, as the kernel does when memory is short; only the first that asks."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlySplitter(CutSplitter):
    """A splitter that kills the first worker that uses it."""

    def __init__(self, flag="", min_samples_leaf=1):
        super().__init__(min_samples_leaf=min_samples_leaf)
        self.flag = flag

    def split(self, cell):
        die_once(self.flag)
        return super().split(cell)


class DeadlySimilarity(DistanceSimilarity):
    """A similarity that kills the first worker that scores with it."""

    def __init__(self, *, metric="euclidean", representation=None, preprocessor=None, n_jobs=None, flag=""):
        super().__init__(metric=metric, representation=representation, preprocessor=preprocessor, n_jobs=n_jobs)
        self.flag = flag

    def _score_pairs(self, pairs):
        if self.flag:
            die_once(self.flag)
        return super()._score_pairs(pairs)


class FailingSplitter(CutSplitter):
    """A splitter with a bug."""

    def split(self, cell):
        raise ZeroDivisionError("a bug of the user's splitter")


class SlowSplitter(CutSplitter):
    """A splitter that takes its time."""

    def split(self, cell):
        time.sleep(0.05)
        return super().split(cell)


def made_rows(block_info=None, *, start=0, n_rows=0, n_features=0):
    """Return the rows of a chunk, as if they were read from somewhere."""
    if block_info:
        (start, stop), (_, n_features) = block_info[None]["array-location"]
        n_rows = stop - start
    return np.random.default_rng(start).random((n_rows, n_features), dtype=np.float32)


def peak_memory():
    """Return the peak of the memory of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def frame_part(part):
    """A partition of a frame."""
    return part


def file_of(model, folder):
    """Bytes of the model file: all that a model has learned."""
    model.save(folder / "model.simtree")
    return (folder / "model.simtree").read_bytes()
