"""Files are written completely or not at all, and what is no regular file is never replaced by one."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from simtree._utils.files import opened_atomically, write_atomically
from simtree.cli._common import check_writable


def test_a_file_that_could_not_be_finished_is_left_as_it_was(tmp_path):
    file = tmp_path / "new" / "scores.csv"
    write_atomically(file, "old")
    with pytest.raises(TypeError), opened_atomically(file) as stream:
        stream.writelines([b"half", "no bytes"])
    assert file.read_text() == "old"
    assert os.listdir(file.parent) == ["scores.csv"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link_to_what_is_written(tmp_path, exists):
    target, link = tmp_path / "models" / "v2.simtree", tmp_path / "links" / "current.simtree"
    target.parent.mkdir()
    link.parent.mkdir()
    if exists:
        target.write_text("old")
    link.symlink_to("../models/v2.simtree")
    check_writable("--out", link.parent, link)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(link.parent) == ["current.simtree"]
    assert os.listdir(target.parent) == ["v2.simtree"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_not_replaced(tmp_path, linked):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    if linked:
        (tmp_path / "link").symlink_to(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    file = tmp_path / "link" if linked else pipe
    check_writable("--out", file.parent, file)
    write_atomically(file, "scores")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert file.is_symlink() == linked
    reader.join(10)
    assert read == [b"scores"]


def test_a_full_disk_names_the_file_that_was_asked_for(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "scores.csv")
    with (
        pytest.raises(OSError, match=r"link.csv cannot be written: .*; free some space"),
        opened_atomically(tmp_path / "link.csv"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert sorted(os.listdir(tmp_path)) == ["link.csv"]
