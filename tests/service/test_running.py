"""A real service: its client, many at once, TLS, what it logs, and how it ends."""

from __future__ import annotations

import ast
import json
import math
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

import simtree
from running_service import Service, make_gallery, people
from simtree import Gallery
from simtree.service import ServiceError

pytestmark = pytest.mark.slow


ASKED_WHEN_WARM = """
import importlib, json, pkgutil, sys
from numba.core.dispatcher import Dispatcher
import simtree._kernels
from simtree.service._served import Served

def signatures():
    names = [found.name for found in pkgutil.iter_modules(simtree._kernels.__path__, "simtree._kernels.")]
    modules = [importlib.import_module(name) for name in names]
    kernels = {id(own): own for module in modules for own in vars(module).values() if isinstance(own, Dispatcher)}
    return {f"{own.py_func.__name__}{signature}" for own in kernels.values() for signature in own.signatures}

served = Served(sys.argv[1])
served.warm_up()
served.check()
before = signatures()
for sample in json.loads(sys.argv[2]):
    served.verify(["p00"], [sample])
    served.identify([sample], 5, None, None)
    served.explain("p00", sample)
print(json.dumps([len(before), sorted(signatures() - before)]))
"""


def test_nothing_is_compiled_after_the_service_is_ready(tmp_path):
    """In a process of its own, for this one has used all kernels; with a model that was fitted with missing values."""
    X, y = people(30, 3, 0)
    X[::7, 1] = np.nan
    model = simtree.SimilarityForest(n_estimators=2, n_pairs=500, random_state=0).fit(X, y)
    query = make_gallery(tmp_path / "people.gallery", model, n=12, is_calibrated=False)[0]
    samples = [query.tolist(), [*query[:3].tolist(), math.nan]]
    command = [sys.executable, "-c", ASKED_WHEN_WARM, str(tmp_path / "people.gallery"), json.dumps(samples)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n_before, compiled = json.loads(done.stdout)
    assert n_before
    assert compiled == []


@pytest.fixture
def client(running):
    with running.service.client(running.tokens["admin"]) as found:
        yield found


def test_the_client_asks_for_everything(client, running):
    described = client.gallery()
    assert (described["features"], described["scopes"]) == (["x0", "x1", "x2", "x3"], ["admin"])
    query = running.queries[5]
    assert client.verify("p05", query)["decision"] == "accepted"
    assert client.verify("p06", query)["decision"] == "rejected"
    found = client.identify([query], k=2)
    assert found["results"][0]["candidates"][0]["id"] == "p05"
    assert found["results"][0]["decision"] == "candidate"
    assert client.explain("p05", query)["contributions"]
    first, again = (client.enroll("client/../ann.", [query + 40.0], request="r", metadata={"site": "C"}) for _ in range(2))
    assert (first["is_repeated"], again["is_repeated"]) == (False, True)
    assert client.subjects(prefix="client/")["ids"] == ["client/../ann."]
    assert client.subject("client/../ann.")["metadata"] == {"site": "C"}
    assert client.remove("client/../ann.")["n_samples"] == 1
    assert client.audit(limit=1)["calls"][0]["action"] == "remove"
    with pytest.raises(ServiceError, match=r"the id is not enrolled. \(status 404\)") as caught:
        client.subject("client/../ann.")
    assert caught.value.status == 404
    assert len(caught.value.request) == 32


def test_a_client_without_a_key(running):
    with running.service.client() as client, pytest.raises(ServiceError, match=r"a valid key is needed. \(status 401\)"):
        client.gallery()


def test_many_enrol_and_search_at_once(running):
    """Every enrolment is sent twice at the same time, and is done once."""
    n = 24

    def work(k):
        with running.service.client(running.tokens["admin"], n_retries=20) as client:
            if k % 3 == 2:
                return client.identify(running.queries[:3], k=1)["results"][0]["candidates"][0]["id"]
            name = f"many{k // 3}"
            return client.enroll(name, [np.full(4, 60.0 + k // 3)], request=name)["is_repeated"]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(n)))
    assert set(found[2::3]) == {"p00"}
    for k in range(n // 3):
        assert sorted(found[3 * k : 3 * k + 2]) == [False, True]
    with running.service.client(running.tokens["admin"]) as client:
        for k in range(n // 3):
            assert client.subject(f"many{k}")["n_samples"] == 1
            client.remove(f"many{k}")


def test_neither_secrets_nor_people_are_logged(running, client):
    client.identify(running.queries[:2])
    client.subject("p07")
    with running.service.client(running.tokens["enrol"][:-1] + "?") as other, pytest.raises(ServiceError):
        other.subject("p07")
    with pytest.raises(ServiceError):
        client.subject("nobody-of-this-name")
    log = running.service.log.read_text()
    assert " subject 200 " in log
    for token in running.tokens.values():
        assert token.split(".")[1][:20] not in log
        assert all(token.split(".")[1].encode() not in file.read_bytes() for file in running.folder.iterdir() if file.is_file())
    assert "p07" not in log
    assert "nobody-of-this-name" not in log


def test_the_curl_lines_of_the_page_work(running):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("curl ")]
    assert len(lines) == 10
    environment = {**os.environ, "URL": running.url, "KEY": running.tokens["admin"]}
    script = "\n".join(line.replace("curl ", "curl --fail-with-body ", 1) + " && echo" for line in lines)
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"decision":"accepted"' in done.stdout
    assert '"decision":"removed"' in done.stdout


def certificate(folder):
    """Make a certificate for this machine."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", folder / "tls.key", "-out", folder / "tls.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder / "tls.pem", folder / "tls.key"


def enrol_until_stopped(service, token, tag, confirmed):
    """Enrol one person after the other; note whom the service has confirmed."""
    with service.client(token) as client:
        for k in range(100_000):
            try:
                client.enroll(f"{tag}-{k}", [[float(k), 1.0, 2.0, 3.0]], request=str(uuid.uuid4()))
            except (httpx.TransportError, ServiceError):
                return
            confirmed.append(f"{tag}-{k}")


def test_what_was_confirmed_survives_a_kill(folder, prepared):
    service = Service(folder / "people.gallery", "--keys", folder / "keys.json", "--rate", 1e6, "--burst", 10**6)
    confirmed = []
    workers = [
        threading.Thread(target=enrol_until_stopped, args=(service, prepared.tokens["enrol"], f"w{k}", confirmed))
        for k in range(4)
    ]
    for worker in workers:
        worker.start()
    while len(confirmed) < 40:
        workers[0].join(0.01)
        assert any(worker.is_alive() for worker in workers)
    os.kill(service.process.pid, signal.SIGKILL)
    for worker in workers:
        worker.join()
    assert service.process.wait(timeout=60) == -signal.SIGKILL
    with Gallery.open(folder / "people.gallery") as gallery:
        enrolled = set(gallery.ids())
        assert set(confirmed) <= enrolled
        assert len(enrolled) <= 20 + len(confirmed) + len(workers)  # each may have had one that was done but not confirmed
        assert gallery.identify([[0.0, 1.0, 2.0, 3.0]], k=1).id[0].endswith("-0")


def test_sigterm_finishes_what_is_running_and_tls(folder, prepared):
    """A request that has begun when the signal comes is answered; afterwards nobody is let in."""
    pem, key = certificate(folder)
    options = ("--keys", folder / "keys.json", "--tls-cert", pem, "--tls-key", key)
    trusting = ssl.create_default_context(cafile=pem)
    service = Service(folder / "people.gallery", *options)
    assert service.url.startswith("https://127.0.0.1:")
    with service.client(prepared.tokens["admin"], verify=trusting) as client:
        assert client.identify(prepared.queries[:1])["n_identities"] == 20
        assert client._http.get("/livez").headers["strict-transport-security"].startswith("max-age=")
    with pytest.raises(httpx.TransportError):
        httpx.get(service.url.replace("https", "http"))

    arrived = threading.Event()

    def parts():
        body = b'{"samples": [[1.0, 2.0, 3.0, 4.0]]}'
        yield body[:10]
        service.process.send_signal(signal.SIGTERM)
        while is_listening(service.url):
            arrived.wait(0.02)
        yield body[10:]

    headers = {
        "Authorization": f"Bearer {prepared.tokens['admin']}",
        "Content-Type": "application/json",
        "Idempotency-Key": "last",
    }
    answer = httpx.post(
        f"{service.url}/v1/subjects/last/samples", content=parts(), headers=headers, verify=trusting, timeout=60
    )
    assert (answer.status_code, answer.json()["decision"]) == (201, "enrolled")
    assert service.process.wait(timeout=60) in (0, -signal.SIGTERM)
    with Gallery.open(folder / "people.gallery") as gallery:
        assert "last" in gallery
    assert "Traceback" not in service.log.read_text()


def is_listening(url):
    found = httpx.URL(url)
    try:
        socket.create_connection((found.host, found.port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "name", ["service/__init__", "service/_client", "service/_keys", "cli/_serve", "cli/_keys", "cli/_app"]
)
def test_what_the_service_needs_is_imported_when_it_runs(name):
    """A client needs httpx alone, and the command works without the extra."""
    tree = ast.parse((Path(simtree.__file__).parent / f"{name}.py").read_text())
    found = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not {part.split(".")[0] for part in found} & {"fastapi", "uvicorn", "httpx", "prometheus_client"}
    assert not found & {f"simtree.service._{part}" for part in ("app", "gate", "routes", "server")}
