"""A client of the service."""

from __future__ import annotations

import time
import urllib.parse
import uuid
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike


class ServiceError(Exception):
    """Error raised if a service refuses a request.

    Parameters
    ----------
    status : int
        Status of the answer.
    detail : str
        What the service says.
    request : str, default=""
        Number of the request, by which the audit names it.
    """

    def __init__(self, status: int, detail: str, request: str = "") -> None:
        super().__init__(f"{detail} (status {status})")
        self.status, self.request = status, request


class Client:
    """A client of ``simtree serve``; answers are dicts, as the OpenAPI document of the service describes them.

    What is refused because of too many requests, or because the service is starting, is asked for again, and so is what was
    lost on the way: an enrolment has a name of its own, and is done once.

    Parameters
    ----------
    url : str
        Address of the service.
    key : str, optional
        Key, ``id.secret``.
    n_retries : int, default=3
        How often a request is repeated.
    **options : dict
        Options of `httpx.Client`, such as ``timeout`` or ``verify``.

    Examples
    --------
    >>> from simtree.service import Client
    >>> with Client("http://127.0.0.1:8000", "5d1f0c2a.secret") as client:
    ...     client.url
    'http://127.0.0.1:8000'
    """

    def __init__(self, url: str, key: str | None = None, *, n_retries: int = 3, **options: Any) -> None:
        import httpx

        self.url, self.n_retries, self._lost = url, n_retries, httpx.TransportError
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, **{"timeout": 30.0, **options})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def gallery(self) -> dict[str, Any]:
        """Return what is served, and what the key allows.

        Returns
        -------
        dict
            Features, limits, calibration and scopes.
        """
        return self._ask("GET", "/v1/gallery")

    def verify(self, id: str, sample: ArrayLike) -> dict[str, Any]:
        """Return the decision whether a sample is of an identity.

        Parameters
        ----------
        id : str
            The identity.
        sample : array-like of shape (n_features,)
            The sample.

        Returns
        -------
        dict
            Score, threshold and decision.
        """
        answer = self._ask("POST", "/v1/verify", json={"claims": [{"id": id, "sample": _cells(sample)}]})
        return {**answer, **answer.pop("results")[0]}

    def identify(self, samples: ArrayLike, **options: Any) -> dict[str, Any]:
        """Return the candidates of samples.

        Parameters
        ----------
        samples : array-like of shape (n_samples, n_features)
            Samples to search for.
        **options : dict
            Options ``k``, ``max_fpir`` and ``where``, as in `Gallery.identify`.

        Returns
        -------
        dict
            Candidates of each sample, and the threshold.
        """
        return self._ask("POST", "/v1/identify", json={"samples": _cells(samples), **options})

    def explain(self, id: str, sample: ArrayLike) -> dict[str, Any]:
        """Return what each feature contributes to the score of a sample with an identity.

        Parameters
        ----------
        id : str
            The identity.
        sample : array-like of shape (n_features,)
            The sample.

        Returns
        -------
        dict
            Contributions of features.
        """
        return self._ask("POST", "/v1/explain", json={"id": id, "sample": _cells(sample)})

    def enroll(self, id: str, samples: ArrayLike, *, request: str | None = None, **options: Any) -> dict[str, Any]:
        """Enrol samples of an identity.

        Parameters
        ----------
        id : str
            The identity.
        samples : array-like of shape (n_samples, n_features)
            Its samples.
        request : str, optional
            Name under which the enrolment is done once, however often it is repeated; a new one by default.
        **options : dict
            Options ``metadata``, ``time`` and ``on_duplicate``, as in `Gallery.enroll`.

        Returns
        -------
        dict
            What was done.
        """
        headers = {"Idempotency-Key": request or str(uuid.uuid4())}
        return self._ask("POST", f"{_path(id)}/samples", json={"samples": _cells(samples), **options}, headers=headers)

    def subjects(self, **options: Any) -> dict[str, Any]:
        """Return ids.

        Parameters
        ----------
        **options : dict
            Options ``prefix``, ``after`` and ``limit``.

        Returns
        -------
        dict
            Ids, and where to go on.
        """
        return self._ask("GET", "/v1/subjects", params=options)

    def subject(self, id: str) -> dict[str, Any]:
        """Return what is enrolled of an identity.

        Parameters
        ----------
        id : str
            The identity.

        Returns
        -------
        dict
            Number of samples, times and metadata.
        """
        return self._ask("GET", _path(id))

    def remove(self, id: str) -> dict[str, Any]:
        """Remove an identity.

        Parameters
        ----------
        id : str
            The identity.

        Returns
        -------
        dict
            What was done.
        """
        return self._ask("DELETE", _path(id))

    def audit(self, **options: Any) -> dict[str, Any]:
        """Return calls, the newest first.

        Parameters
        ----------
        **options : dict
            Options ``limit`` and ``before``.

        Returns
        -------
        dict
            Calls, and where to go on.
        """
        return self._ask("GET", "/v1/audit", params=options)

    def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        for n_left in reversed(range(self.n_retries + 1)):
            try:
                answer = self._http.request(method, path, **content)
            except self._lost:
                # Whether a removal was done is not known, and the second one would say that nobody is there.
                if not n_left or method == "DELETE":
                    raise
                time.sleep(0.2)
                continue
            if answer.is_success:
                return dict(answer.json())
            if answer.status_code not in (429, 503) or not n_left:
                break
            time.sleep(float(answer.headers.get("retry-after", 1)))
        is_ours = answer.headers.get("content-type", "").startswith("application/json")
        said = answer.json() if is_ours else {}
        raise ServiceError(answer.status_code, said.get("detail", answer.reason_phrase), said.get("request", ""))


def _cells(samples: ArrayLike) -> Any:
    """Return samples as JSON has them: null where a value is missing."""
    cells = np.asarray(samples, dtype=object)
    if cells.ndim:
        return [_cells(entry) for entry in cells]
    value = cells.item()
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or type(value).__name__ == "NAType" or value != value else value


def _path(id: str) -> str:
    # A dot may be taken for a folder.
    return "/v1/subjects/" + urllib.parse.quote(id, safe="").replace(".", "%2E")
