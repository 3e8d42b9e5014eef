"""The application: routes, the page, and errors as one sentence, behind the gate."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata, resources
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from simtree.service import _routes as routes
from simtree.service._access import Call
from simtree.service._calls import CallLog
from simtree.service._gate import CALL, Gate, refused
from simtree.service._keys import KeyRing
from simtree.service._limits import Limits
from simtree.service._metrics import Metrics
from simtree.service._refusals import RefusedError, refusal_of
from simtree.service._served import Served

DESCRIPTION = """\
1:1 and 1:N decisions of a simtree gallery. Every answer carries the fingerprint of the model and the size of the gallery.
Keys are sent as `Authorization: Bearer <key>`. What is refused is answered with one sentence in `detail`.
"""
# Files of the page: where they are, and what they are.
FILES = {
    "/": ("simtree.service", "_page/index.html", "text/html; charset=utf-8"),
    "/page.js": ("simtree.service", "_page/page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("simtree.service", "_page/page.css", "text/css; charset=utf-8"),
    "/icon.svg": ("simtree.service", "_page/icon.svg", "image/svg+xml"),
    "/style.css": ("simtree.report", "style.css", "text/css; charset=utf-8"),
}

logger = logging.getLogger("simtree.service")


def create_app(
    served: Served,
    *,
    keys: KeyRing,
    limits: Limits,
    calls: CallLog,
    is_local: bool = True,
    has_tls: bool = False,
    n_threads: int = 4,
) -> Gate:
    """Return the ASGI application of a service, which closes the gallery and the audit when it ends.

    Parameters
    ----------
    served : Served
        The gallery.
    keys : KeyRing
        Who may come in.
    limits : Limits
        How often and with how much.
    calls : CallLog
        The audit.
    is_local : bool, default=True
        Whether only this machine can reach the service.
    has_tls : bool, default=False
        Whether the service speaks TLS.
    n_threads : int, default=4
        Number of requests that are worked on at once; others wait.

    Returns
    -------
    Gate
        The application.
    """
    metrics = Metrics(served.is_ready)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = n_threads
        loader = threading.Thread(target=served.warm_up, name="warm-up", daemon=True)
        loader.start()
        yield
        await asyncio.to_thread(calls.close)
        served.close()

    app = FastAPI(
        title="simtree",
        version=metadata.version("simtree"),
        description=DESCRIPTION,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    routes.add_routes(app, served, limits, calls, metrics)
    _add_open_routes(app, served, keys)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _failed)
    for kind in (RefusedError, ValueError, TypeError, OverflowError, OSError):
        app.add_exception_handler(kind, _explained(served))
    return Gate(
        app,
        served=served,
        keys=keys,
        limits=limits,
        calls=calls,
        metrics=metrics,
        is_local=is_local,
        has_tls=has_tls,
    )


def _add_open_routes(app: FastAPI, served: Served, keys: KeyRing) -> None:
    """Add the page, and what tells whether the service lives and is ready."""

    @app.get("/livez", summary="Whether the process lives, and whether a key is asked for")
    async def live() -> Any:
        return JSONResponse({"live": True, "needs_key": keys.is_needed})

    @app.get("/readyz", summary="Whether questions are answered", responses={503: routes.PROBLEMS[503]})
    async def ready() -> Any:
        # In a thread, because it may wait for the gallery, but not in the pool, where it would wait for searches.
        await asyncio.to_thread(served.check)
        return JSONResponse({"ready": True})

    for path, (package, name, kind) in FILES.items():
        content = resources.files(package).joinpath(name).read_bytes()
        app.add_api_route(path, _sender(content, kind), methods=["GET"], include_in_schema=False)


def _sender(content: bytes, kind: str) -> Any:
    async def send() -> Response:
        return Response(content, media_type=kind)

    return send


def _answered(request: Request, refusal: RefusedError) -> Response:
    call: Call = request.scope[CALL]
    status, headers, body = refused(refusal, call)
    return Response(body, status, {name.decode(): value.decode() for name, value in headers})


async def _invalid(request: Request, error: Any) -> Response:
    """Say what is wrong with a request, without repeating what was sent."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the request"
    return _answered(request, RefusedError(422, f"{where}: {first['msg']}."))


async def _failed(request: Request, error: Any) -> Response:
    return _answered(request, RefusedError(error.status_code, str(error.detail), headers=error.headers))


def _explained(served: Served) -> Any:
    async def explain(request: Request, error: Exception) -> Response:
        refusal = refusal_of(error, served.path)
        assert refusal is not None
        if refusal.status >= 500 and refusal is not error:
            logger.warning("request %s: %s", request.scope[CALL].request, error)
        return _answered(request, refusal)

    return explain
