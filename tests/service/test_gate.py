"""Limits, origins, and a gallery, an audit or keys that cannot be used: refused at once, with one sentence."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

import httpx
import pytest

from simtree import Gallery

pytestmark = pytest.mark.slow


@pytest.fixture
def sample(prepared):
    return prepared.queries[0].tolist()


def _wait(condition):
    """Wait until something has happened in the thread of the service."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_the_size_of_requests_is_limited(started, folder, sample):
    with started(folder, max_body=2000, max_batch=3) as api:
        body = {"samples": [sample] * 4}
        answer = api.http.post("/v1/identify", json=body)
        assert (answer.status_code, answer.json()["detail"]) == (413, "a request may have 3 samples; send them in several.")
        answer = api.http.post("/v1/identify", json={"samples": [sample] * 100})
        assert (answer.status_code, "2,000 bytes" in answer.json()["detail"]) == (413, True)
        parts = (b" " * 100 for _ in range(50))  # of no declared length
        answer = api.http.post("/v1/identify", content=parts, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert api.http.post("/v1/identify", json={"samples": [sample]}).status_code == 200


def test_only_json_is_read(started, folder):
    with started(folder) as api:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            answer = api.http.post("/v1/identify", content=b"{}", headers={"Content-Type": kind})
            assert answer.status_code == 415


def test_the_rate_of_a_key_is_limited(started, folder, prepared):
    with started(folder, rate=0.5, burst=3) as api:
        answers = [api.http.get("/v1/gallery") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 2
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
        other = {"Authorization": f"Bearer {prepared.tokens['enrol']}"}
        assert api.http.get("/v1/gallery", headers=other).status_code == 200
        assert api.http.get("/livez").status_code == 200


def test_the_number_of_requests_in_flight_is_limited(started, folder, sample, monkeypatch):
    """Beyond the limit requests are refused at once, while others wait: no queue grows."""
    with started(folder, max_in_flight=3) as api:
        release, searching = threading.Event(), threading.Semaphore(0)
        identify = api.served.identify

        def slow(*arguments):
            searching.release()
            assert release.wait(60)
            return identify(*arguments)

        monkeypatch.setattr(api.served, "identify", slow)
        answers = []

        def ask():
            answers.append(api.http.post("/v1/identify", json={"samples": [sample]}))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert searching.acquire(timeout=60)
        refused = [api.http.post("/v1/identify", json={"samples": [sample]}) for _ in range(5)]
        assert {answer.status_code for answer in refused} == {429}
        assert refused[0].headers["retry-after"] == "1"
        assert api.http.get("/readyz").status_code == 200
        release.set()
        for thread in threads:
            thread.join(60)
        assert [answer.status_code for answer in answers] == [200] * 3
        assert api.http.post("/v1/identify", json={"samples": [sample]}).status_code == 200


def test_beyond_the_limit_no_body_is_read(started, folder, prepared, sample):
    """One client has sent half of its request; another is refused before it has sent any of its own."""
    body = json.dumps({"samples": [sample]}).encode()
    head = (
        f"POST /v1/identify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {prepared.tokens['admin']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    with started(folder, max_in_flight=1, body_seconds=60.0) as api:
        address = ("localhost", httpx.URL(api.url).port)
        with socket.create_connection(address, timeout=30) as first, socket.create_connection(address, timeout=30) as second:
            first.sendall(head + body[:5])
            _wait(lambda: api.app._n_in_flight == 1)
            second.sendall(head)
            assert second.recv(100).startswith(b"HTTP/1.1 429 ")
            first.sendall(body[5:])
            assert first.recv(100).startswith(b"HTTP/1.1 200 ")


def test_pages_of_other_sites_are_refused(started, folder):
    with started(folder) as api:
        assert api.http.get("/v1/gallery", headers={"Origin": "https://elsewhere.example"}).status_code == 403
        assert api.http.get("/v1/gallery", headers={"Origin": "null"}).status_code == 403
        assert api.http.get("/v1/gallery", headers={"Origin": api.url}).status_code == 200
        assert api.http.options("/v1/verify", headers={"Origin": api.url}).status_code == 405


def test_without_keys_other_names_of_this_machine_are_refused(started, folder):
    with started(folder, with_keys=False) as api:
        assert api.http.get("/v1/gallery").json()["key"] == "local"
        for host in ("localhost:8000", "127.0.0.1", "[::1]:80"):
            assert api.http.get("/v1/gallery", headers={"Host": host}).status_code == 200
        for host in ("rebound.example", "localhost.example:8000", ""):
            assert api.http.get("/v1/gallery", headers={"Host": host}).status_code == 421


def test_a_slow_request_is_given_up(started, folder, prepared):
    with started(folder, body_seconds=0.05) as api:
        address = ("localhost", httpx.URL(api.url).port)
        head = (
            f"POST /v1/identify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {prepared.tokens['admin']}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_leaves_while_it_sends_is_in_the_audit(started, folder, prepared):
    with started(folder) as api:
        head = (
            f"POST /v1/identify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {prepared.tokens['identify']}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        with socket.create_connection(("localhost", httpx.URL(api.url).port), timeout=60) as connection:
            connection.sendall(head.encode())
            _wait(lambda: api.app._n_in_flight == 1)
        _wait(lambda: len(api.app.calls.latest(1)) == 1)
        (call,) = api.app.calls.latest(10)
        assert (call["action"], call["status"]) == ("identify", 499)
        assert call["key"] == prepared.tokens["identify"].split(".")[0]
        assert 'simtree_requests_total{route="identify",status="499"} 1.0' in api.http.get("/metrics").text


def test_before_it_is_warm_nothing_is_answered(started, folder, sample):
    with started(folder, is_warm=False) as api:
        assert api.http.get("/livez").json() == {"live": True, "needs_key": True}
        for answer in (api.http.get("/readyz"), api.http.post("/v1/identify", json={"samples": [sample]})):
            assert answer.status_code == 503
            assert "starting" in answer.json()["detail"]
            assert answer.headers["retry-after"] == "1"
        assert "simtree_ready 0.0" in api.http.get("/metrics").text
        api.served._is_warm.set()
        assert "simtree_ready 1.0" in api.http.get("/metrics").text


@pytest.mark.parametrize("way", ["moved away", "replaced", "copied over", "overwritten"])
def test_a_gallery_that_is_no_longer_the_same_gives_503_and_a_sentence(started, folder, forest, sample, way):
    path = folder / "people.gallery"
    with started(folder) as api:
        assert api.http.get("/readyz").status_code == 200
        Gallery.create(folder / "other", forest).close()
        if way == "moved away":
            os.replace(path, folder / "elsewhere")
        elif way == "replaced":
            os.replace(folder / "other", path)
        else:
            path.write_bytes((folder / "other").read_bytes() if way == "copied over" else os.urandom(5000))
        enrolling = {"json": {"samples": [sample]}, "headers": {"Idempotency-Key": "x"}}
        for answer in (
            api.http.get("/readyz"),
            api.http.post("/v1/identify", json={"samples": [sample]}),
            api.http.post("/v1/subjects/ann/samples", **enrolling),
        ):
            assert answer.status_code == 503, answer.text
            assert "retry-after" in answer.headers
            assert answer.json()["detail"].startswith("the gallery ")
            assert str(folder) not in answer.text
        assert api.http.get("/livez").status_code == 200
        assert "simtree_ready 0.0" in api.http.get("/metrics").text


def test_without_an_audit_nothing_is_answered(started, folder, sample):
    with started(folder) as api:
        api.app.calls._connection.execute("DROP TABLE call")
        api.app.calls._connection.commit()
        answer = api.http.post("/v1/identify", json={"samples": [sample]})
        assert (answer.status_code, "audit cannot be written" in answer.json()["detail"]) == (503, True)
        assert "candidates" not in answer.text


def test_without_its_keys_nobody_is_let_in(started, folder, monkeypatch):
    monkeypatch.setattr("simtree.service._keys.RELOAD_SECONDS", 0.0)
    with started(folder) as api:
        (folder / "keys.json").unlink()
        for _ in range(2):
            answer = api.http.get("/v1/gallery")
            assert (answer.status_code, "keys" in answer.json()["detail"]) == (503, True)


def test_what_nobody_expected_is_a_number_in_the_log(started, folder, sample, monkeypatch, caplog):
    with started(folder) as api:
        monkeypatch.setattr(api.served, "identify", lambda *arguments: 1 / 0)
        answer = api.http.post("/v1/identify", json={"samples": [sample]})
        assert answer.status_code == 500
        assert "ZeroDivisionError" not in answer.text
        assert answer.json()["request"] in caplog.text
        assert api.http.get("/v1/audit").json()["calls"][0]["status"] == 500
