"""Keys: made, listed, removed, recognised, and never readable by others."""

from __future__ import annotations

import json
import os
import stat

import pytest

from simtree.service import _keys
from simtree.service._keys import KeyFileError, KeyRing, add_key, read_keys, remove_key


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


def test_a_key_is_recognised_and_its_secret_is_nowhere(path):
    key, token = add_key(path, ["verify", "identify"], note="kiosk")
    name, secret = token.split(".")
    assert (name, len(secret)) == (key.id, 43)  # 32 bytes in base64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret not in path.read_text()
    found = KeyRing(path).authenticate(f"Bearer {token}")
    assert found == key == read_keys(path)[name]
    assert [found.allows(scope) for scope in _keys.SCOPES] == [True, True, False, False, False]


def test_admin_allows_everything(path):
    key, _ = add_key(path, ["admin"])
    assert all(key.allows(scope) for scope in _keys.SCOPES)


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1],
        lambda token: token + "x",
        lambda token: token.split(".")[0],
        lambda token: "0" * 8 + token[8:],
        lambda token: "",
        lambda token: ".",
        lambda token: "é" * 300,
    ],
)
def test_wrong_keys_are_not_recognised(path, change):
    _, token = add_key(path, ["admin"])
    assert KeyRing(path).authenticate(f"Bearer {change(token)}") is None


def test_other_headers_are_not_keys(path):
    _, token = add_key(path, ["admin"])
    ring = KeyRing(path)
    assert [ring.authenticate(header) for header in (None, "", token, f"Basic {token}", "Bearer")] == [None] * 5
    assert ring.authenticate(f"bearer  {token} ") is not None


def test_a_running_service_follows_the_file(path, monkeypatch):
    key, token = add_key(path, ["verify"])
    ring = KeyRing(path)
    monkeypatch.setattr(_keys, "RELOAD_SECONDS", 0.0)
    _, other = add_key(path, ["verify"])
    assert ring.authenticate(f"Bearer {other}")
    remove_key(path, key.id)
    assert ring.authenticate(f"Bearer {token}") is None
    assert ring.authenticate(f"Bearer {other}")
    content = path.read_text()
    path.write_text("nothing")
    for _ in range(2):
        with pytest.raises(KeyFileError, match="not a file of keys"):
            ring.authenticate(f"Bearer {other}")
    path.write_text(content)
    assert ring.authenticate(f"Bearer {other}")


def test_without_a_file_everybody_is_local():
    assert KeyRing(None).authenticate(None).id == "local"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_is_refused(path, mode):
    add_key(path, ["verify"])
    os.chmod(path, mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_keys(path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": 1, "keys": [{}]}',
        '{"version": 1, "keys": 3}',
        '{"version": 1, "keys": [{"id": "a", "sha256": "00", "scopes": ["verify"], "note": "", "created": ""}]}',
        json.dumps({"version": 1, "keys": [{"id": "a", "sha256": "0" * 64, "scopes": ["all"], "note": "", "created": ""}]}),
        json.dumps({"version": 1, "keys": [{"id": 1, "sha256": "0" * 64, "scopes": [], "note": "", "created": ""}]}),
    ],
)
def test_damaged_files_are_refused(path, content):
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="not a file of keys"):
        read_keys(path)


def test_a_newer_version_is_refused(path):
    path.write_text('{"version": 2, "keys": []}')
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="upgrade simtree"):
        read_keys(path)


def test_bad_input_leaves_the_file_as_it_is(path):
    key, _ = add_key(path, ["verify"])
    before = path.read_bytes()
    for scopes, note in ((["everything"], ""), ([], ""), (["verify"], "x\n"), (["verify"], "x" * 101)):
        with pytest.raises(ValueError, match=r"scope|note"):
            add_key(path, scopes, note)
    with pytest.raises(ValueError, match=f"no key 'abc'; it has {key.id}"):
        remove_key(path, "abc")
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["keys.json"]


def test_two_processes_do_not_overwrite_each_other(path):
    add_key(path, ["verify"])
    (path.parent / ".keys.json.new").touch()
    with pytest.raises(FileExistsError, match="another process is changing"):
        add_key(path, ["verify"])
    assert len(read_keys(path)) == 1


def test_a_file_that_is_not_there(path):
    with pytest.raises(KeyFileError, match="simtree keys add"):
        KeyRing(path)
