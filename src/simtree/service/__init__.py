"""A gallery over HTTP: ``simtree serve``, and a client for it."""

from simtree.service._client import Client, ServiceError

__all__ = ["Client", "ServiceError"]
