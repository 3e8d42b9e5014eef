"""Metrics of a service in the format of Prometheus. Labels are routes, never paths, which hold ids of people."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

# Bounds of the histogram of times, in seconds.
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """Counters and gauges of one service.

    Parameters
    ----------
    is_ready : callable
        Function that returns whether the service answers questions; it is asked whenever metrics are read.
    """

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("simtree_requests", "Answers.", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "simtree_request_seconds", "Time to an answer.", ["route"], registry=self.registry, buckets=SECONDS
        )
        self.refused = Counter("simtree_refused", "Requests that were not worked on.", ["reason"], registry=self.registry)
        self.in_flight = Gauge("simtree_in_flight", "Requests that are worked on or wait for it.", registry=self.registry)
        self.identities = Gauge("simtree_gallery_identities", "Identities at the last answer.", registry=self.registry)
        ready = Gauge("simtree_ready", "Whether the service answers questions.", registry=self.registry)
        ready.set_function(is_ready)
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics."""
        return generate_latest(self.registry)
