"""The routes of the service: each asks the gallery, and notes for the audit what it was about.

`simtree.service._access` says who may call them. They are ordinary functions, which run in a pool of threads.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Path, Query, Request, Security
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer

from simtree.service import _schemas as schemas
from simtree.service._access import Call
from simtree.service._calls import CallLog
from simtree.service._gate import CALL
from simtree.service._limits import Limits
from simtree.service._metrics import Metrics
from simtree.service._refusals import RefusedError
from simtree.service._served import Served

MAX_LISTED = 1000
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem, "description": said}
    for status, said in {
        400: "the request cannot be read",
        401: "no valid key",
        403: "the key does not have the scope, or the request comes from a page of another site",
        404: "the id is not enrolled",
        405: "the method is not possible here",
        408: "the request took too long to arrive",
        413: "the request is too large",
        415: "the request is not JSON",
        421: "the service has another name",
        422: "the request cannot be answered, for the reason that is given",
        429: "too many requests, of this key or of all; see Retry-After",
        503: "the service is starting, or its gallery, audit or keys cannot be used; see Retry-After",
    }.items()
}
Id = Annotated[str, Path(min_length=1, max_length=1000, examples=["ann"])]


def add_routes(app: FastAPI, served: Served, limits: Limits, calls: CallLog, metrics: Metrics) -> None:
    """Add all routes for clients with a key to an application."""
    bearer = Security(HTTPBearer(auto_error=False, description="A key, as `simtree keys add` prints it."))
    router = APIRouter(responses=PROBLEMS, dependencies=[bearer])

    def ready(request: Request, n_samples: int = 0) -> Call:
        """Return the call of a request, if the gallery can be asked and the samples are not too many."""
        call: Call = request.scope[CALL]
        if n_samples > limits.max_batch:
            raise RefusedError(413, f"a request may have {limits.max_batch} samples; send them in several.")
        call.n_samples = n_samples
        served.check()
        return call

    def answer(call: Call, content: dict[str, Any], ids: list[str] | None = None, status: int = 200) -> JSONResponse:
        """Return an answer, and note what the audit says of it."""
        call.model, call.n_identities = content["fingerprint"], content["n_identities"]
        if ids:
            call.subjects.extend(served.hashes(ids))
        return JSONResponse(content, status)

    @router.get("/v1/gallery", response_model=schemas.GalleryAnswer, summary="What is served, and what the key allows")
    def gallery(request: Request) -> Any:
        call = ready(request)
        assert call.key is not None
        shown = {name: value for name, value in asdict(limits).items() if name in schemas.LimitsAnswer.model_fields}
        return answer(call, {**served.describe(), "key": call.key.id, "scopes": list(call.key.scopes), "limits": shown})

    @router.post(
        "/v1/verify", response_model=schemas.VerifyAnswer, summary="Decide whether samples are of who they are said to be"
    )
    def verify(request: Request, asked: schemas.VerifyRequest) -> Any:
        call = ready(request, len(asked.claims))
        ids = [claim.id for claim in asked.claims]
        return answer(call, served.verify(ids, [claim.sample for claim in asked.claims]), ids)

    @router.post(
        "/v1/identify", response_model=schemas.IdentifyAnswer, summary="Search for the identities that samples may be of"
    )
    def identify(request: Request, asked: schemas.IdentifyRequest) -> Any:
        call = ready(request, len(asked.samples))
        if asked.k > limits.max_candidates:
            raise RefusedError(422, f"k={asked.k} is too many; ask for at most {limits.max_candidates} candidates.")
        found = served.identify(asked.samples, asked.k, asked.max_fpir, asked.where)
        named = [candidate["id"] for result in found["results"] for candidate in result["candidates"]]
        return answer(call, found, named)

    @router.post("/v1/explain", response_model=schemas.ExplainAnswer, summary="Say what each feature contributes to a score")
    def explain(request: Request, asked: schemas.ExplainRequest) -> Any:
        call = ready(request, 1)
        return answer(call, served.explain(asked.id, asked.sample), [asked.id])

    @router.get("/v1/subjects", response_model=schemas.SubjectsAnswer, summary="List ids")
    def subjects(
        request: Request,
        prefix: Annotated[str, Query(max_length=1000, description="What the ids begin with.")] = "",
        after: Annotated[str, Query(max_length=1000, description="Only ids after this one.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
    ) -> Any:
        return answer(ready(request), served.subjects(prefix, after, limit))

    @router.get("/v1/subjects/{id:path}", response_model=schemas.SubjectAnswer, summary="Say what is enrolled of an identity")
    def subject(request: Request, id: Id) -> Any:
        return answer(ready(request), served.subject(id), [id])

    @router.post(
        "/v1/subjects/{id:path}/samples",
        response_model=schemas.EnrolAnswer,
        status_code=201,
        summary="Enrol samples of an identity; a retry with the same Idempotency-Key enrols once",
    )
    def enrol(
        request: Request,
        id: Id,
        asked: schemas.EnrolRequest,
        idempotency_key: Annotated[
            str, Header(min_length=1, max_length=200, examples=["5f0c6c0e-7f0f-4a53-9a53-0c8f6f7f2b11"])
        ],
    ) -> Any:
        call = ready(request, len(asked.samples))
        assert call.key is not None
        # Of a key of the service, so that clients cannot meet by chance or take the names of others.
        name = hashlib.sha256(f"{call.key.id}\0{idempotency_key}".encode(errors="surrogatepass")).hexdigest()
        done = served.enrol(
            id, asked.samples, metadata=asked.metadata, time=asked.time, on_duplicate=asked.on_duplicate, request=name
        )
        return answer(call, done, [id], status=201)

    @router.delete("/v1/subjects/{id:path}", response_model=schemas.RemoveAnswer, summary="Remove an identity with its samples")
    def remove(request: Request, id: Id) -> Any:
        call = ready(request)
        call.subjects.extend(served.hashes([id]))  # nobody can compute it afterwards
        return answer(call, served.remove(id))

    @router.get("/v1/audit", response_model=schemas.AuditAnswer, summary="List calls, the newest first")
    def audit(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
        before: Annotated[int | None, Query(ge=0, lt=1 << 62, description="Only calls before this number.")] = None,
    ) -> Any:
        call = ready(request)
        rows = calls.latest(limit, before)
        older = rows[-1]["number"] if len(rows) == limit else None
        listed = [{**row, "time": _utc(row["time"])} for row in rows]
        return answer(call, {"calls": listed, "next": older, **served.size()})

    @router.get("/metrics", response_class=Response, summary="Metrics in the format of Prometheus")
    def prometheus() -> Any:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.include_router(router)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
