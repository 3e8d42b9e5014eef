"""Limits of a service: sizes, and how often and how many at once."""

from __future__ import annotations

from dataclasses import dataclass

from simtree._utils.validation import check_integer, check_real


@dataclass(frozen=True)
class Limits:
    """Limits of a service; what is beyond them is refused at once, so that no queue grows.

    Parameters
    ----------
    max_body : int
        Number of bytes of a request.
    max_batch : int
        Number of samples of a request.
    max_candidates : int
        Number of candidates per sample.
    rate : float
        Requests per second and key, over time.
    burst : int
        Requests of a key that may come at once.
    max_in_flight : int
        Requests that are worked on or wait for it, of all keys; from before their body is read, so that memory is bounded, too.
    body_seconds : float
        How long a request may take to arrive.
    """

    max_body: int = 1 << 20
    max_batch: int = 100
    max_candidates: int = 50
    rate: float = 50.0
    burst: int = 100
    max_in_flight: int = 32
    body_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name in ("max_body", "max_batch", "max_candidates", "burst", "max_in_flight"):
            check_integer(name, getattr(self, name), 1)
        for name in ("rate", "body_seconds"):
            check_real(name, getattr(self, name), 0.0, float("inf"), open_low=True, open_high=True)


class Buckets:
    """One bucket of tokens per key: a request takes one, and so many come back per second.

    Parameters
    ----------
    rate : float
        Tokens per second.
    burst : int
        Size of a bucket.

    Examples
    --------
    >>> buckets = Buckets(rate=2.0, burst=2)
    >>> [buckets.take("key", now) for now in (0.0, 0.0, 0.0, 0.5)]
    [0.0, 0.0, 0.5, 0.0]
    """

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, burst
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, key: str, now: float) -> float:
        """Take a token; return 0, or the seconds to wait for one if the bucket is empty."""
        level, before = self._levels.get(key, (float(self.burst), now))
        level = min(float(self.burst), level + (now - before) * self.rate)
        wait = 0.0 if level >= 1.0 else (1.0 - level) / self.rate
        self._levels[key] = (level if wait else level - 1.0, now)
        return wait
