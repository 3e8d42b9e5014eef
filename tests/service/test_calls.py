"""The audit of calls: rows are on the disk when they are confirmed, and cannot be changed."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing

import pytest

from simtree.service._calls import CallLog, CallLogError, Row

HASH = "0123456789abcdef" * 2


def row(number, subjects=()):
    return Row(1e9 + number, f"r{number}", "k", "identify", 200, 1, "ab", 1.5, subjects)


def test_rows_are_confirmed_when_they_are_written(tmp_path):
    log = CallLog(tmp_path / "calls")
    waiting = [log.add(row(number, (HASH,) * (number % 3))) for number in range(40)]
    for done in waiting:
        done.result(timeout=30)
    assert [entry["request"] for entry in log.latest(3)] == ["r39", "r38", "r37"]
    assert [entry["request"] for entry in log.latest(3, before=38)] == ["r36", "r35", "r34"]
    assert log.latest(1, before=6)[0]["subjects"] == [HASH]
    assert stat.S_IMODE((tmp_path / "calls").stat().st_mode) == 0o600
    log.close()
    with closing(CallLog(tmp_path / "calls")) as again:
        assert len(again.latest(100)) == 40


def test_what_is_waiting_is_written_at_the_end(tmp_path):
    log = CallLog(tmp_path / "calls")
    waiting = [log.add(row(number)) for number in range(2000)]
    log.close()
    assert all(done.done() and done.exception() is None for done in waiting)


@pytest.mark.parametrize("statement", ["UPDATE call SET key = 'other'", "DELETE FROM call"])
def test_rows_cannot_be_changed(tmp_path, statement):
    with closing(CallLog(tmp_path / "calls")) as log:
        log.add(row(0)).result(timeout=30)
    with (
        closing(sqlite3.connect(tmp_path / "calls")) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only be appended"),
    ):
        connection.execute(statement)


@pytest.mark.parametrize("content", [b"text that is long enough to be no database of any kind at all", None])
def test_other_files_are_refused(tmp_path, content):
    if content is None:
        with closing(sqlite3.connect(tmp_path / "calls")) as connection:
            connection.execute("CREATE TABLE other (x)")
    else:
        (tmp_path / "calls").write_bytes(content)
    with pytest.raises(CallLogError, match="give another file"):
        CallLog(tmp_path / "calls")


def test_a_row_that_cannot_be_written_is_said(tmp_path):
    log = CallLog(tmp_path / "calls")
    log._connection.execute("DROP TABLE call")
    log._connection.commit()
    with pytest.raises(CallLogError, match="cannot be written"):
        log.add(row(0)).result(timeout=30)
    with pytest.raises(CallLogError, match="cannot be read"):
        log.latest(1)
    log.close()
