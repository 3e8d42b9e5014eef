"""A service under load: latency, throughput, processor time, refusals and memory, with 1 to 64 clients over loopback.

    python benchmarks/bench_service.py [--identities 100000] [--features 64] [--clients 1 4 16 64] [--requests 400]

The service is `simtree serve` in a process of its own, with its default limits except for the rate per key. Clients are
threads of this process, on the same machine: they share its cores with the service. Each sends one request after the other,
until all have sent ``--requests`` together or ``--seconds`` have passed. Who is refused with 429 waits as long as the answer
says; latencies are those of answers with 200 or 201. A search must find the person whom its sample is of. The last rows are of
a service that may work on few requests at once: overload gives 429s, and nothing else.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simtree import Gallery, GaussianSimilarity
from simtree._utils.files import write_atomically

ACTIONS = ("verify", "identify", "enrol")
FEW = 4  # requests in flight of the service that is overloaded


@dataclass
class Load:
    """What some clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    n_wrong: int = 0
    processor: float = 0.0
    megabytes: float = 0.0

    def row(self) -> dict[str, float]:
        """Return the figures of a table."""
        times = 1000.0 * np.array(self.latencies or [np.nan])
        return {
            "answers": len(self.latencies),
            "per second": len(self.latencies) / self.seconds,
            "median ms": float(np.median(times)),
            "p99 ms": float(np.quantile(times, 0.99)),
            "CPU ms": 1000.0 * self.processor / max(1, self.statuses.total()),
            "429": self.statuses[429],
            "other errors": sum(n for status, n in self.statuses.items() if status not in (200, 201, 429)),
            "wrong": self.n_wrong,
            "memory MB": self.megabytes,
        }


def make_gallery(path: Path, n: int, n_features: int) -> np.ndarray:
    """Make a gallery with one sample per identity; return these samples."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 4)
    model = GaussianSimilarity().fit(rng.normal(size=(200, n_features))[y] + 0.3 * rng.normal(size=(800, n_features)), y)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    strangers = rng.normal(size=(100, n_features)).astype(np.float32)
    with Gallery.create(path, model, dtype="float32") as gallery:
        gallery.enroll(np.arange(n), X)
        gallery.calibrate(strangers, [f"stranger {k}" for k in range(len(strangers))], max_fpir=0.05)
    return X


@contextmanager
def running(gallery: Path, *options: str) -> Iterator[str]:
    """Run a service; yield its address when it is ready."""
    command = [sys.executable, "-m", "simtree", "serve", str(gallery), "--port", "0", "--rate", "1e9", "--burst", "1000000"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = next(found[1] for line in process.stderr if (found := re.search(r" on http://(\S+)", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        end = time.monotonic() + 300.0
        while not _is_ready(address):
            if time.monotonic() > end or process.poll() is not None:
                raise RuntimeError("the service did not become ready")
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=60)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


def usage(address: str) -> tuple[float, float]:
    """Return the processor time of a service in seconds and its resident memory in megabytes, as it says itself."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = dict(re.findall(r"^(process_\w+) (\S+)$", text, re.MULTILINE))
    return float(found["process_cpu_seconds_total"]), float(found["process_resident_memory_bytes"]) / 1e6


def requests_of(action: str, X: np.ndarray) -> Callable[[int], tuple[str, bytes, Callable[[Any], bool]]]:
    """Return a function that makes the k-th request: its path, its body, and whether an answer is right."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, len(X), 4096)
    noisy = (X[rows] + 0.1 * rng.normal(size=(4096, X.shape[1]))).round(4).tolist()

    def make(k: int) -> tuple[str, bytes, Callable[[Any], bool]]:
        name, sample = str(rows[k % 4096]), noisy[k % 4096]
        if action == "verify":
            body = {"claims": [{"id": name, "sample": sample}]}
            return "/v1/verify", json.dumps(body).encode(), lambda answer: answer["results"][0]["id"] == name
        if action == "identify":
            body = {"samples": [sample], "k": 10}
            return "/v1/identify", json.dumps(body).encode(), lambda answer: answer["results"][0]["candidates"][0]["id"] == name
        body = {"samples": [np.random.default_rng([2, k]).normal(size=len(sample)).tolist()]}
        return f"/v1/subjects/new-{k}/samples", json.dumps(body).encode(), lambda answer: answer["n_samples"] == 1

    return make


def load(address: str, action: str, X: np.ndarray, n_clients: int, n_requests: int, seconds: float) -> Load:
    """Let some clients ask, and return what they saw."""
    found, lock, numbers = Load(), threading.Lock(), itertools.count()
    make = requests_of(action, X)
    before_all, _ = usage(address)
    start = time.perf_counter()
    end = start + seconds

    def work() -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        while (k := next(numbers)) < n_requests and time.perf_counter() < end:
            path, body, is_right = make(k)
            headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
            before = time.perf_counter()
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            took = time.perf_counter() - before
            with lock:
                found.statuses[answer.status] += 1
                if answer.status in (200, 201):
                    found.latencies.append(took)
                    found.n_wrong += not is_right(json.loads(content))
            if answer.status == 429:
                time.sleep(max(0.0, min(float(answer.headers["Retry-After"]), end - time.perf_counter())))
        connection.close()

    clients = [threading.Thread(target=work) for _ in range(n_clients)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    found.seconds = time.perf_counter() - start
    after_all, found.megabytes = usage(address)
    found.processor = after_all - before_all
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Return a table in Markdown."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [f"{value:,.1f}" if isinstance(value, float) else str(value) for value in row.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print a table and write a JSON file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--identities", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--requests", type=int, default=400, help="per row")
    parser.add_argument("--seconds", type=float, default=10.0, help="per row")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if min(options.identities, options.features, options.requests, *options.clients) < 1 or options.seconds <= 0.0:
        sys.exit("--identities, --features, --clients, --requests and --seconds must be positive.")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        gallery = Path(name) / "people.gallery"
        X = make_gallery(gallery, options.identities, options.features)

        def measure(address: str, action: str, n_clients: int, service: str) -> None:
            seen = load(address, action, X, n_clients, options.requests, options.seconds)
            rows.append({"service": service, "action": action, "clients": n_clients, **seen.row()})

        with running(gallery) as address:
            print(f"{options.identities:,} identities of {options.features} float32; ready with {usage(address)[1]:,.0f} MB\n")
            for action in options.actions:
                for n_clients in options.clients:
                    measure(address, action, n_clients, "as it is")
        with running(gallery, "--max-in-flight", str(FEW)) as address:
            measure(address, "identify", max(options.clients), f"{FEW} in flight")
            measure(address, "identify", 1, f"{FEW} in flight, afterwards")
    print(table(rows))
    sizes = {"identities": options.identities, "features": options.features}
    write_atomically(options.out / "bench_service.json", json.dumps({**sizes, "rows": rows}, indent=1) + "\n")
    if any(row["other errors"] or row["wrong"] for row in rows):
        sys.exit("Some answers were wrong, or errors other than 429.")


if __name__ == "__main__":
    main()
