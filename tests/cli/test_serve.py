"""``simtree keys`` and what ``simtree serve`` refuses before it listens."""

from __future__ import annotations

import json
import socket
import stat

import pytest
from typer.testing import CliRunner

from simtree import DistanceSimilarity, Gallery
from simtree.cli._app import app
from simtree.service._keys import KeyRing
from simtree.service._limits import Limits
from simtree.service._server import Settings, _listen


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    if code == 1:
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
    return done


def test_a_key_is_printed_once_listed_and_removed(tmp_path):
    keys = tmp_path / "keys.json"
    done = run("keys", "add", "--keys", keys, "--scope", "verify", "--scope", "identify", "--note", "kiosk")
    token = done.stdout.strip()
    assert KeyRing(keys).authenticate(f"Bearer {token}").note == "kiosk"
    assert token.split(".")[1] not in done.stderr
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    listed = run("keys", "list", "--keys", keys).stdout
    assert "identify, verify" in listed
    assert token.split(".")[1] not in listed
    made = json.loads(run("keys", "add", "--keys", keys, "--scope", "admin", "--json").stdout)
    found = json.loads(run("keys", "list", "--keys", keys, "--json").stdout)
    assert [key["id"] for key in found] == [token.split(".")[0], made["id"]]
    run("keys", "remove", "--keys", keys, made["id"])
    assert json.loads(run("keys", "remove", "--keys", keys, token.split(".")[0], "--json").stdout)["removed"]
    assert json.loads(run("keys", "list", "--keys", keys, "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "--scope", "everything"], "choose one of 'verify', 'identify', 'enrol', 'metrics', 'admin'"),
        (["remove", "abc"], "has no key 'abc'"),
        (["list"], "simtree keys add"),
    ],
)
def test_mistakes_with_keys_get_one_sentence(tmp_path, arguments, sentence):
    keys = tmp_path / "keys.json"
    if arguments[0] == "remove":
        run("keys", "add", "--keys", keys, "--scope", "verify")
    assert sentence in run("keys", *arguments, "--keys", keys, code=1).stderr


@pytest.fixture
def gallery(tmp_path):
    model = DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    Gallery.create(tmp_path / "people.gallery", model).close()
    return tmp_path / "people.gallery"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "people.example"])
def test_others_are_served_only_with_keys_and_tls(gallery, host):
    file = gallery.with_name("file")
    file.touch()
    for options in ([], ["--keys", file], ["--tls-cert", file, "--tls-key", file]):
        done = run("serve", gallery, "--host", host, *options, code=1)
        assert "can be reached by others" in done.stderr
        assert ("no --keys" in done.stderr) == ("--keys" not in options)
        assert ("no --tls-cert" in done.stderr) == ("--tls-cert" not in options)
    Settings(gallery, host=host, keys=file, certificate=file, private_key=file).check()
    Settings(gallery, host=host, insecure=True).check()
    Settings(gallery, host="::1").check()


def test_what_is_wrong_is_said_before_anything_starts(gallery, tmp_path):
    assert "there is no" in run("serve", tmp_path / "nothing", code=1).stderr.lower()
    file = tmp_path / "file"
    file.write_text("text")
    assert "is not a gallery" in run("serve", file, "--port", 0, code=1).stderr
    assert "belong together" in run("serve", gallery, "--tls-cert", file, code=1).stderr
    assert "there is no file" in run("serve", gallery, "--tls-cert", file, "--tls-key", tmp_path / "x", code=1).stderr
    assert "simtree keys add" in run("serve", gallery, "--keys", tmp_path / "x", code=1).stderr
    assert "give another file" in run("serve", gallery, "--port", 0, "--audit", file, code=1).stderr
    assert "rate=-1.0" in run("serve", gallery, "--rate", -1, code=1).stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"--port {port} cannot be listened on" in run("serve", gallery, "--port", port, code=1).stderr


def test_a_gallery_in_postgresql_needs_a_file_for_its_audit(tmp_path):
    address = "postgresql://ann:secret@127.0.0.1:1/people"
    done = run("serve", address, code=1)
    assert "give --audit FILE" in done.stderr
    assert "secret" not in done.stderr
    assert Settings(address, audit=tmp_path / "calls").audit_file == tmp_path / "calls"
    assert Settings("people.gallery").audit_file.name == "people.gallery.calls"


@pytest.mark.parametrize("name", ["max_body", "max_batch", "max_candidates", "burst", "max_in_flight", "rate", "body_seconds"])
def test_limits_are_positive(name):
    with pytest.raises(ValueError, match=f"{name}=0 "):
        Limits(**{name: 0})


def test_answers_do_not_wait_for_small_packets_to_be_confirmed():
    """asyncio sets TCP_NODELAY only on connections of a socket that names its protocol."""
    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
