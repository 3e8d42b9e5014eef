"""The gate before the application: who may come in, how often, with how much, and what leaves.

An answer leaves only after its row of the audit is on the disk. Bodies of requests and answers are small and are held in
memory, so that limits are checked before anything is parsed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import urllib.parse
import uuid
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from simtree.service._access import OPEN, ROUTES, Call, Route
from simtree.service._calls import CallLog, Row
from simtree.service._keys import KeyRing
from simtree.service._limits import Buckets, Limits
from simtree.service._metrics import Metrics
from simtree.service._refusals import RefusedError, refusal_of
from simtree.service._served import Served

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Under which name an application finds the `Call` of a request.
CALL = "simtree.call"
# Status of a call whose client has gone away before it had sent everything, in the audit and the metrics; nobody is sent it.
GONE = 499
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

logger = logging.getLogger("simtree.service")


class Answer(NamedTuple):
    """An answer that is complete."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class GoneError(Exception):
    """The client has gone away."""


class Gate:
    """ASGI application around another one.

    Parameters
    ----------
    app : callable
        The application behind the gate.
    served : Served
        The gallery.
    keys : KeyRing
        Who may come in.
    limits : Limits
        How often and with how much.
    calls : CallLog
        The audit.
    metrics : Metrics
        What is counted.
    is_local : bool
        Whether only this machine can reach the service. Without keys, names of other hosts are refused then: a page of a
        stranger in a browser of this machine could ask by giving its own name our address.
    has_tls : bool
        Whether the service speaks TLS.
    """

    def __init__(
        self,
        app: App,
        *,
        served: Served,
        keys: KeyRing,
        limits: Limits,
        calls: CallLog,
        metrics: Metrics,
        is_local: bool,
        has_tls: bool,
    ) -> None:
        self.app, self.served, self.keys, self.limits, self.calls, self.metrics = app, served, keys, limits, calls, metrics
        self.is_local = is_local
        added = {**HEADERS, "strict-transport-security": "max-age=31536000"} if has_tls else HEADERS
        self._headers = [(name.encode(), value.encode()) for name, value in added.items()]
        self._buckets = Buckets(limits.rate, limits.burst)
        self._n_in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, when = time.perf_counter(), time.time()
        call = Call(uuid.uuid4().hex)
        try:
            answer = await self._answer(scope, receive, call)
        except GoneError:
            answer = Answer(GONE, [], b"")
        except Exception as error:
            answer = self._refused(error, call)
        seconds = time.perf_counter() - started
        is_gone = answer.status == GONE
        if call.key is not None:
            answer = await self._audited(answer, call, when, seconds)
        self._count(answer, call, seconds)
        if is_gone:
            return
        headers = [*answer.headers, *self._headers, (b"x-request-id", call.request.encode())]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, receive: Receive, call: Call) -> Answer:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        path = self._checked_path(scope, headers)
        if path in OPEN:
            if scope["method"] not in ("GET", "HEAD"):
                raise RefusedError(405, f"{path} can only be read.", headers={"allow": "GET, HEAD"})
            return await self._ask({**scope, "method": "GET"}, b"", call, receive)
        if not path.startswith("/v1/") and path != "/metrics":
            raise RefusedError(404, "there is nothing here.")
        call.key = self.keys.authenticate(headers.get("authorization"))
        if call.key is None:
            self.metrics.refused.labels("key").inc()
            raise RefusedError(401, "a valid key is needed.", headers={"www-authenticate": 'Bearer realm="simtree"'})
        wait = self._buckets.take(call.key.id, time.monotonic())
        if wait:
            self.metrics.refused.labels("rate").inc()
            raise RefusedError(429, f"this key may ask {self.limits.rate:g} times per second; wait.", retry_after=wait)
        route = _route(scope["method"], path)
        call.action = route.action
        if route.scope is not None and not call.key.allows(route.scope):
            self.metrics.refused.labels("scope").inc()
            raise RefusedError(403, f"this key does not have the scope {route.scope!r}.")
        with self._in_flight():
            body = await self._body(headers, receive) if route.method == "POST" else b""
            return await self._ask(scope, body, call, receive)

    def _checked_path(self, scope: Scope, headers: dict[str, str]) -> str:
        """Return the path of a request, after checking where it comes from."""
        host = headers.get("host", "").lower()
        if self.is_local and not self.keys.is_needed and _without_port(host) not in LOOPBACK:
            raise RefusedError(421, "this service answers under the name localhost only.")
        origin = headers.get("origin")
        if origin is not None and urllib.parse.urlsplit(origin).netloc.lower() != host:
            raise RefusedError(403, "requests from pages of other sites are not answered.")
        try:
            return urllib.parse.unquote_to_bytes(scope.get("raw_path") or scope["path"].encode()).decode()
        except UnicodeDecodeError:
            raise RefusedError(400, "the path is not valid UTF-8.") from None

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        """Return the body of a request, which must be JSON, of a limited size, and arrive in time."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, "send JSON, with the header Content-Type: application/json.")
        too_large = RefusedError(413, f"a request may have {self.limits.max_body:,} bytes; send fewer samples at once.")
        if int(headers.get("content-length", 0)) > self.limits.max_body:
            raise too_large
        content = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    content += message.get("body", b"")
                    if len(content) > self.limits.max_body:
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(content)
        except TimeoutError:
            raise RefusedError(
                408,
                f"the request took more than {self.limits.body_seconds:g} seconds to arrive.",
                headers={"connection": "close"},
            ) from None

    @contextmanager
    def _in_flight(self) -> Iterator[None]:
        """Work on a request inside the context, unless too many others are worked on; their bodies are what memory is for."""
        if self._n_in_flight >= self.limits.max_in_flight:
            self.metrics.refused.labels("in flight").inc()
            raise RefusedError(429, "too many requests are being worked on; ask again.", retry_after=1)
        self._n_in_flight += 1
        self.metrics.in_flight.inc()
        try:
            yield
        finally:
            self._n_in_flight -= 1
            self.metrics.in_flight.dec()

    async def _ask(self, scope: Scope, body: bytes, call: Call, receive: Receive) -> Answer:
        """Return the answer of the application."""
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        status, headers, parts = 500, [], bytearray()

        async def read() -> Message:
            return given.pop() if given else await receive()

        async def collect(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
            else:
                parts.extend(message.get("body", b""))

        await self.app({**scope, CALL: call}, read, collect)
        return Answer(status, headers, bytes(parts))

    def _refused(self, error: Exception, call: Call) -> Answer:
        refusal = refusal_of(error, self.served.path)
        if refusal is None:
            logger.error("request %s (%s) failed", call.request, call.action, exc_info=error)
            refusal = RefusedError(500, "something went wrong; the log of the service has the number of this request.")
        return refused(refusal, call)

    async def _audited(self, answer: Answer, call: Call, when: float, seconds: float) -> Answer:
        """Return the answer when the audit has it, or that the audit cannot be written."""
        assert call.key is not None
        subjects = tuple(sorted(set(call.subjects)))
        row = Row(
            when, call.request, call.key.id, call.action, answer.status, call.n_samples, call.model, 1000.0 * seconds, subjects
        )
        try:
            await asyncio.wrap_future(self.calls.add(row))
        except Exception as error:
            logger.error("request %s has no row in the audit: %s", call.request, error)
            return self._refused(error, call)
        return answer

    def _count(self, answer: Answer, call: Call, seconds: float) -> None:
        self.metrics.requests.labels(call.action, str(answer.status)).inc()
        self.metrics.seconds.labels(call.action).observe(seconds)
        if call.n_identities is not None:
            self.metrics.identities.set(call.n_identities)
        level = logging.WARNING if answer.status >= 500 else logging.INFO
        who = "-" if call.key is None else call.key.id
        logger.log(level, "%s %s %s %d %.1f ms", call.request, who, call.action, answer.status, 1000.0 * seconds)


def refused(refusal: RefusedError, call: Call) -> Answer:
    """Return the answer that refuses a request."""
    body = json.dumps({"detail": refusal.detail, "request": call.request}).encode()
    headers = {**refusal.headers, "content-type": "application/json", "content-length": str(len(body))}
    return Answer(refusal.status, [(name.encode(), value.encode()) for name, value in headers.items()], body)


def _route(method: str, path: str) -> Route:
    """Return the route of a request that has a key."""
    matching = [route for route in ROUTES if route.matches(path)]
    for route in matching:
        if route.method == method:
            return route
    if matching:
        allowed = ", ".join(sorted({route.method for route in matching}))
        raise RefusedError(405, f"here only {allowed} is possible.", headers={"allow": allowed})
    raise RefusedError(404, "there is nothing here.")


def _without_port(host: str) -> str:
    return host[: host.rindex(":")] if ":" in host and not host.endswith("]") else host
