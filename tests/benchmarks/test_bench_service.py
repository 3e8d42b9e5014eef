"""The benchmark of the service runs at a tiny size, and its answers are right."""

from __future__ import annotations

import sys

import httpx
import pytest

import bench_service
from running_service import started_in_thread

pytestmark = pytest.mark.slow


def test_tiny_load(tmp_path):
    X = bench_service.make_gallery(tmp_path / "people.gallery", 60, 6)
    rows = []
    with started_in_thread(tmp_path, max_in_flight=2) as api:
        address = httpx.URL(api.url).netloc.decode()
        for action in bench_service.ACTIONS:
            seen = bench_service.load(address, action, X, 3, 12, 30.0)
            assert seen.statuses.total() == 12
            assert set(seen.statuses) <= {200, 201, 429}
            assert seen.n_wrong == 0
            rows.append({"action": action, **seen.row()})
    assert rows[0]["answers"] + rows[0]["429"] == 12
    assert rows[0]["median ms"] > 0.0
    assert len(bench_service.table(rows).splitlines()) == 5


def test_wrong_use_is_one_sentence(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--clients", "0"])
    with pytest.raises(SystemExit, match="must be positive"):
        bench_service.main()
