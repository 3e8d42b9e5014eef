from __future__ import annotations

import threading
import time

import pytest
from sklearn import config_context, get_config

from simtree._utils.threads import in_threads, submitted


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1, 50])
def test_each_part_is_done_once(n_jobs):
    done = []
    in_threads(done.append, range(40), n_jobs)
    assert sorted(done) == list(range(40))


def test_several_at_a_time():
    """Each part waits for the other: one thread alone would wait for ever."""
    both = threading.Barrier(2, timeout=600)
    in_threads(lambda part: both.wait(), [0, 1], 2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_goes_wrong_is_raised_and_ends_the_rest(n_jobs):
    done = []

    def work(part):
        if part == 3:
            raise ZeroDivisionError("three")
        time.sleep(0.001)
        done.append(part)

    with pytest.raises(ZeroDivisionError, match="three"):
        in_threads(work, range(3_000), n_jobs)
    assert len(done) < 1_500


def test_submitted_calls_have_the_settings_of_scikit_learn():
    with config_context(assume_finite=True):
        futures = submitted([lambda: get_config()["assume_finite"]] * 3, n_threads=2)
    assert [future.result() for future in futures] == [True] * 3


def test_submitted_calls_raise_when_they_are_asked():
    def fail():
        raise ValueError("no")

    first, second = submitted([fail, int], n_threads=2)
    with pytest.raises(ValueError, match="no"):
        first.result()
    assert second.result() == 0
