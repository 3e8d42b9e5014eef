"""What was confirmed survives: processes are killed, files are copied in the middle of a run, and several write at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gallery_worker
from gallery_worker import N_PEOPLE, N_SAMPLES, batch, change, expected_ids, model
from simtree import Gallery

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked, which this system cannot do"),
]
N_KILLS, MANY_KILLS = 25, 300


class Workers:
    """Processes that change a gallery."""

    def __init__(self):
        command = [sys.executable, gallery_worker.__file__]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.program.stdout.readline() == "ready\n"

    def start(self, path, folder, tag="p", first=0, last=10_000, **order):
        """Start a process; return its number and its log, which is in a folder."""
        log = folder / f"{tag}.log"
        log.touch()
        line = {"path": str(path), "log": str(log), "tag": tag, "first": first, "last": last, **order}
        self.program.stdin.write(json.dumps(line) + "\n")
        self.program.stdin.flush()
        return int(self.program.stdout.readline()), log

    def close(self):
        self.program.stdin.close()
        self.program.stdout.close()
        self.program.wait()


@pytest.fixture(scope="module")
def workers():
    started = Workers()
    yield started
    started.close()


@pytest.fixture
def path(place):
    """A gallery in either kind of store."""
    Gallery.create(place(), model()).close()
    return place()


@pytest.fixture
def file(tmp_path):
    """A gallery in a file, for what only files can suffer."""
    Gallery.create(tmp_path / "people.gallery", model()).close()
    return tmp_path / "people.gallery"


def n_confirmed(log):
    return len(log.read_text().splitlines())


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds=600.0):
    """Wait for other processes, which may be slow; the end is there only because a test should not hang."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def check_whole(gallery, *, is_alone=True):
    """Every identity has all of its samples and, unless others write, their content; return who is there."""
    with gallery._session.searching() as (connection, state):
        if gallery._session.store.kind == "sqlite":
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert (state.snapshot.templates.sizes == N_SAMPLES).all()
    ids = state.snapshot.names.tolist()
    if ids and is_alone:
        assert gallery.ids() == ids
        tag, step, k = ids[-1].split("-")
        probe = batch(tag, int(step))[1][int(k) + N_PEOPLE : int(k) + N_PEOPLE + 1]
        assert gallery.identify(probe, k=1).id[0] == ids[-1]
        assert gallery.identify(probe, k=1).score[0] == 0.0
    return set(ids)


def n_steps(ids, tag, at_least, at_most):
    """After how many steps these people are in the gallery."""
    (found,) = [n for n in range(at_least, at_most + 1) if expected_ids(tag, n) == ids]
    return found


@pytest.mark.parametrize("n_kills", [N_KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.long)])
def test_what_was_confirmed_survives_kill_9(n_kills, path, workers, tmp_path):
    rng, done = np.random.default_rng(n_kills), 0
    for _ in range(n_kills):
        pid, log = workers.start(path, tmp_path, first=done, is_calm=False)
        wait_until(lambda log=log, before=done, pid=pid: n_confirmed(log) > before + 1 or not is_alive(pid))
        assert is_alive(pid)  # nothing went wrong in it
        time.sleep(rng.uniform(0.0, 0.04))
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_alive(pid))
        confirmed = n_confirmed(log)
        with Gallery.open(path) as gallery:
            with gallery._session.store.writing():
                pass  # a server may still be at work for a client that was killed: wait for its turn
            done = n_steps(check_whole(gallery), "p", confirmed, confirmed + 1)
        log.write_text("".join(f"{step}\n" for step in range(done)))
    assert done >= n_kills
    with Gallery.open(path) as gallery:
        gallery.compact()
        assert check_whole(gallery) == expected_ids("p", done)
        for step in range(done, done + 3):
            change(gallery, "p", step)


def test_a_disk_that_fills_up_loses_nothing_that_was_confirmed(file, workers, tmp_path):
    """No file may become longer than some bytes, as if the disk were full: writing fails at another place each time."""
    done, said = 0, tmp_path / "said"
    for n_bytes in (150_000, 233_333, 300_001, 411_111):
        pid, log = workers.start(file, tmp_path, first=done, is_calm=False, max_bytes=n_bytes, said=str(said))
        wait_until(lambda pid=pid: not is_alive(pid))
        assert re.match(r".*people\.gallery cannot be (read or )?written", said.read_text())
        assert n_confirmed(log) > done
        done = n_confirmed(log)
        with Gallery.open(file) as gallery:
            assert check_whole(gallery) == expected_ids("p", done)


def test_copies_with_a_cut_log_open_at_a_committed_state(file, workers, tmp_path):
    rng, last = np.random.default_rng(1), 30
    log_file = file.with_name(file.name + "-wal")
    pid, log = workers.start(file, tmp_path, last=last, stays=True)  # closing the gallery would remove its log
    copies = []
    for at_least in range(1, last, 6):  # so that copies differ, however slow the process is
        wait_until(lambda at_least=at_least: n_confirmed(log) >= at_least)
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGSTOP)
        confirmed, folder = n_confirmed(log), tmp_path / f"copy{len(copies)}"
        folder.mkdir()
        shutil.copy(file, folder)
        shutil.copy(log_file, folder)
        copies.append((folder, confirmed))
        os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))
    seen = set()
    for folder, confirmed in copies:
        whole = (folder / log_file.name).read_bytes()
        assert (folder / file.name).stat().st_size < 200_000  # nothing was copied from the log into the file yet
        cuts = [len(whole), *rng.integers(0, len(whole), 6).tolist()]
        for number, cut in enumerate(cuts):
            place = folder / str(number)
            place.mkdir()
            shutil.copy(folder / file.name, place)
            (place / log_file.name).write_bytes(whole[:cut])
            with Gallery.open(place / file.name) as gallery:
                found = n_steps(check_whole(gallery), "p", confirmed if cut == len(whole) else 0, confirmed + 1)
            seen.add(found)
    assert len(seen) > 5


def test_two_writers_lose_nothing_and_a_reader_sees_whole_people(path, workers, tmp_path):
    sizes = set()
    with Gallery.open(path, readonly=True) as reader:
        for first in (0, 10, 20):  # in parts, so that the reader sees several states, however slow it is
            started = [workers.start(path, tmp_path, tag=tag, first=first, last=first + 10) for tag in ("a", "b")]
            is_over = False
            while not is_over:
                is_over = not any(is_alive(pid) for pid, _ in started)
                n_before = [n_confirmed(log) for _, log in started]
                ids = check_whole(reader, is_alone=False)
                for tag, (_, log), at_least in zip("ab", started, n_before, strict=True):
                    own = {name for name in ids if name.startswith(tag)}
                    assert own in [expected_ids(tag, n) for n in range(at_least, n_confirmed(log) + 2)]
                sizes.add(len(ids))
        assert check_whole(reader) == expected_ids("a", 30) | expected_ids("b", 30)
    assert len(sizes) > 2
    assert [n_confirmed(log) for _, log in started] == [30, 30]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed, which shows the calls of the system")
def test_the_disk_has_a_change_before_it_is_confirmed(file, workers, tmp_path):
    trace, go = tmp_path / "trace", tmp_path / "go"
    pid, log = workers.start(file, tmp_path, last=8, go=str(go))
    watched = subprocess.Popen(
        ["strace", "-f", "-y", "-e", "trace=write,pwrite64,fsync,fdatasync", "-o", str(trace), "-p", str(pid)],
        stderr=subprocess.PIPE,
        text=True,
    )
    said = watched.stderr.readline()
    if "attached" not in said:
        go.touch()
        watched.wait()
        pytest.skip(f"strace may not look at processes here: {said.strip()}")
    go.touch()
    wait_until(lambda: not is_alive(pid))
    watched.wait()
    watched.stderr.close()
    calls = [line.split(maxsplit=1)[1] for line in trace.read_text().splitlines() if "(" in line]
    n_seen, is_synced = 0, False
    for call in calls:
        if "-wal>" in call and re.match(r"p?write", call):
            is_synced = False
        elif "-wal>" in call and re.match(r"f(data)?sync", call):
            assert call.endswith("= 0")
            is_synced = True
        elif call.startswith("write") and str(log) in call:
            assert is_synced, "confirmed before the disk had it"
            n_seen, is_synced = n_seen + 1, False
    assert n_seen == 8 == n_confirmed(log)


def test_the_steps_of_the_worker_are_those_that_are_expected(place):
    with Gallery.create(place(), model()) as gallery:
        for step in range(6):
            change(gallery, "p", step)
            assert check_whole(gallery) == expected_ids("p", step + 1)
        assert_array_equal(gallery.verify(*batch("p", 5)).score, 0.0)
