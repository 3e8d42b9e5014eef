"""A program that changes galleries and can be killed at any moment; started once, because importing simtree takes seconds.

For each line of JSON on standard input it forks a process that works as the line says, and prints its number. That process
writes a line to its log whenever a change has been confirmed to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from simtree import DistanceSimilarity, Gallery, MarginalQuantiles
from simtree.gallery import _blocks

N_FEATURES, N_PEOPLE, N_SAMPLES = 6, 3, 2


def model(number=0):
    """One of two models, which give a sample and itself the score 0."""
    representation = MarginalQuantiles(n_quantiles=9) if number else None
    samples = np.random.default_rng(0).normal(size=(20, N_FEATURES))
    return DistanceSimilarity(metric="euclidean", representation=representation).fit(samples, np.repeat(np.arange(5), 4))


def batch(tag, step):
    """People who are enrolled together, with several samples each, that no other step has."""
    X = np.random.default_rng([sum(tag.encode()), step]).normal(size=(N_PEOPLE * N_SAMPLES, N_FEATURES))
    return [f"{tag}-{step}-{k % N_PEOPLE}" for k in range(len(X))], X


def change(gallery, tag, step, is_calm=True):
    """Enrol the people of a step; every fifth step, remove one of those of two steps before instead.

    Unless ``is_calm``, also write the whole file anew or change the model before some steps: nobody comes or goes by that.
    """
    if not is_calm and step % 10 == 7:
        gallery.compact()
    if not is_calm and step % 10 == 2:
        gallery.re_enroll(model(step // 10 % 2))
    if step % 5 == 4:
        gallery.remove(batch(tag, step - 2)[0][0])
    else:
        gallery.enroll(*batch(tag, step))


def expected_ids(tag, n_steps):
    """Who is in a gallery after so many steps."""
    ids = set()
    for step in range(n_steps):
        if step % 5 == 4:
            ids.remove(batch(tag, step - 2)[0][0])
        else:
            ids.update(batch(tag, step)[0])
    return ids


def work(order):
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while "go" in order and not Path(order["go"]).exists():
        time.sleep(0.005)
    if "max_bytes" in order:
        import resource  # which not all systems have

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["max_bytes"], order["max_bytes"]))
    gallery = Gallery.open(order["path"])
    for step in range(order["first"], order["last"]):
        try:
            change(gallery, order["tag"], step, order.get("is_calm", True))
        except OSError as error:
            Path(order["said"]).write_text(str(error))
            break
        os.write(log, f"{step}\n".encode())
    while order.get("stays"):
        signal.pause()
    gallery.close()


def main():
    _blocks.FAN_OUT = 4  # blocks are merged often
    _blocks.merge_blocks.__kwdefaults__["fan_out"] = 4
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes
    with contextlib.suppress(ImportError):
        import simtree.gallery._postgres  # noqa: F401 - so that each process need not import it
    model().pair_score([[np.zeros(N_FEATURES), np.ones(N_FEATURES)]])  # what is compiled is ready before the first fork
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                work(json.loads(line))
            finally:
                os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
