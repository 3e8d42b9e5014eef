"""Requests and answers of the service, as its OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Word = Annotated[str, Strict(), Field(max_length=1000)]
Sample = Annotated[
    list[Number | Word | Annotated[bool, Strict()] | None],
    Field(
        min_length=1,
        description="One value per feature, in the order of /v1/gallery: a number; text, a date such as 2020-01-31 or true and "
        "false where the model was fitted on them; null where a value is missing, if the model takes that.",
    ),
]
Id = Annotated[str, Field(min_length=1, max_length=1000)]
Scalar = Annotated[str, Strict()] | Annotated[bool, Strict()] | Annotated[int, Strict()] | Number
ExpectedFpir = Annotated[
    float | None, Field(description="Share of strangers who would have a candidate in a search at this threshold.")
]
FINGERPRINT = "3f0c9a6b"
# What all examples of answers say of the gallery.
GALLERY = {"fingerprint": FINGERPRINT, "n_identities": 100_000}


def _example(**content: Any) -> ConfigDict:
    """Return the configuration of a model with an example."""
    return ConfigDict(json_schema_extra={"examples": [content]})


class Request(BaseModel):
    """What the bodies of requests have in common: nothing that is not known."""

    model_config = ConfigDict(extra="forbid")


class Claim(Request):
    """A sample, and who it is said to be of."""

    id: Id
    sample: Sample


class VerifyRequest(Request):
    """Claims to decide about."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"claims": [{"id": "ann", "sample": [0.1, -1.2, 0.7]}]}]}
    )
    claims: Annotated[list[Claim], Field(min_length=1)]


class IdentifyRequest(Request):
    """Samples to search for."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"samples": [[0.1, -1.2, 0.7]], "k": 3, "max_fpir": 0.05, "where": {"site": "A"}}]},
    )
    samples: Annotated[list[Sample], Field(min_length=1)]
    k: Annotated[int, Strict(), Field(ge=1, description="Number of candidates per sample.")] = 10
    max_fpir: Annotated[
        Number | None,
        Field(gt=0.0, lt=1.0, description="Share of strangers who may have a candidate; by default that of the calibration."),
    ] = None
    where: Annotated[
        dict[str, Scalar | list[Scalar]] | None, Field(max_length=20, description="Search only identities with this metadata.")
    ] = None


class ExplainRequest(Claim):
    """A sample and an identity whose score is to be explained."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"id": "ann", "sample": [0.1, -1.2, 0.7]}]})


class EnrolRequest(Request):
    """Samples of one identity."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"samples": [[0.1, -1.2, 0.7]], "metadata": {"site": "A"}}]}
    )
    samples: Annotated[list[Sample], Field(min_length=1)]
    metadata: Annotated[dict[str, Scalar] | None, Field(max_length=50)] = None
    time: Annotated[datetime | None, Field(description="When the samples were taken; now by default.")] = None
    on_duplicate: Annotated[
        Literal["ignore", "report", "raise"], Field(description="What to do if a sample matches another identity.")
    ] = "ignore"


class Answer(BaseModel):
    """What all answers carry: which model, and a gallery of which size."""

    fingerprint: Annotated[str, Field(description="Hash of everything that determines scores.", examples=[FINGERPRINT])]
    n_identities: Annotated[int, Field(description="Number of identities in the gallery.", examples=[100_000])]


class Decided(BaseModel):
    """A score and what was decided by it."""

    score: float | None
    decision: str


class Verification(Decided):
    """The decision about a claim."""

    id: str
    threshold: float | None
    decision: Literal["accepted", "rejected"]
    probability: float | None


class VerifyAnswer(Answer):
    """Decisions about claims."""

    model_config = _example(
        results=[{"id": "ann", "score": 4.21, "threshold": 3.5, "decision": "accepted", "probability": 0.997}],
        expected_fpir=0.012,
        **GALLERY,
    )
    results: list[Verification]
    expected_fpir: ExpectedFpir


class Candidate(Decided):
    """An identity that a sample may be of."""

    rank: int
    id: str
    decision: Literal["candidate", "below", "undecided"]
    probability: float | None
    expected_false_matches: Annotated[
        float | None, Field(description="Number of identities that a stranger is expected to match with at least this score.")
    ]


class Identification(BaseModel):
    """Candidates of one sample, the best first."""

    decision: Literal["candidate", "unknown", "undecided"]
    candidates: list[Candidate]


class IdentifyAnswer(Answer):
    """Candidates of all samples."""

    model_config = _example(
        results=[
            {
                "decision": "candidate",
                "candidates": [
                    {
                        "rank": 1,
                        "id": "ann",
                        "score": 4.21,
                        "decision": "candidate",
                        "probability": 0.997,
                        "expected_false_matches": 0.003,
                    },
                    {
                        "rank": 2,
                        "id": "bob",
                        "score": 2.87,
                        "decision": "below",
                        "probability": 0.62,
                        "expected_false_matches": 0.4,
                    },
                ],
            }
        ],
        threshold=3.9,
        promise="FPIR <= 0.05 with 95 % confidence",
        expected_fpir=0.031,
        n_searched=100_000,
        **GALLERY,
    )
    results: list[Identification]
    threshold: float | None
    promise: Annotated[str, Field(description="What holds for the threshold, or why nothing was decided.")]
    expected_fpir: float | None
    n_searched: int


class Contribution(BaseModel):
    """What a feature adds to a score."""

    feature: str
    value: Annotated[
        float | Annotated[str, Strict()] | Annotated[bool, Strict()] | None,
        Field(description="Its value in the sample that was sent."),
    ]
    contribution: float | None


class ExplainAnswer(Answer, Decided):
    """A score as a sum, and the decision of a verification; the values of the enrolled sample are not told."""

    model_config = _example(
        id="ann",
        score=4.21,
        threshold=3.5,
        decision="accepted",
        expected_fpir=0.012,
        explained_score=4.21,
        base=0.0,
        contributions=[
            {"feature": "width", "value": 0.1, "contribution": 2.9},
            {"feature": "height", "value": -1.2, "contribution": 1.1},
        ],
        n_others=1,
        others=0.21,
        **GALLERY,
    )
    id: str
    threshold: float | None
    decision: Literal["accepted", "rejected", "undecided"]
    expected_fpir: ExpectedFpir
    explained_score: Annotated[
        float | None, Field(description="Score with the most similar enrolled sample: what base and contributions add up to.")
    ]
    base: Annotated[float | None, Field(description="Score of an average pair.")]
    contributions: list[Contribution]
    n_others: int
    others: Annotated[float | None, Field(description="Sum of the contributions that are not listed.")]


class SubjectsAnswer(Answer):
    """Ids in the order of their characters."""

    ids: list[str]
    next: Annotated[str | None, Field(description="What to give as `after` for more; null if there are none.")]


class SubjectAnswer(Answer):
    """What is enrolled of an identity."""

    id: str
    n_samples: int
    first: str | None
    last: str | None
    metadata: dict[str, Any]
    hash: Annotated[str, Field(description="What stands for the identity in the audit.")]


class Duplicate(BaseModel):
    """A sample that matches another identity."""

    row: int
    other: str
    score: float | None


class EnrolAnswer(Answer):
    """What an enrolment did."""

    model_config = _example(
        id="ann",
        decision="enrolled",
        n_samples=1,
        is_new=True,
        n_dropped=0,
        is_repeated=False,
        duplicates=[{"row": 0, "other": "anna", "score": 4.02}],
        **GALLERY,
    )
    id: str
    decision: Literal["enrolled"]
    n_samples: int
    is_new: bool
    n_dropped: int
    is_repeated: Annotated[bool, Field(description="Whether it had been done before, and was not done again.")]
    duplicates: list[Duplicate]


class RemoveAnswer(Answer):
    """What a removal did."""

    id: str
    decision: Literal["removed"]
    n_samples: int


class LimitsAnswer(BaseModel):
    """Limits of the service."""

    max_body: int
    max_batch: int
    max_candidates: int
    rate: float
    burst: int


class GalleryAnswer(Answer):
    """What a client must know before it asks."""

    features: Annotated[list[str], Field(description="Names of the values of a sample, in their order.")]
    kinds: Annotated[
        list[Literal["number", "boolean", "category", "date", "left out"]], Field(description="What each value must be.")
    ]
    takes_missing: Annotated[bool, Field(description="Whether values may be null.")]
    has_names: bool
    threshold: float | None
    can_explain: bool
    metadata: list[str]
    calibration: dict[str, Any] | None
    n_samples: int
    model: str
    key: Annotated[str, Field(description="Id of the key that asked.")]
    scopes: list[str]
    limits: LimitsAnswer


class Call(BaseModel):
    """A call with a key."""

    number: int
    time: str
    request: str
    key: str
    action: str
    status: int
    n_samples: int
    model: str
    milliseconds: float
    subjects: list[str]


class AuditAnswer(Answer):
    """Calls, the newest first."""

    calls: list[Call]
    next: Annotated[int | None, Field(description="What to give as `before` for older ones; null if there are none.")]


class Problem(BaseModel):
    """Why a request was refused, in one sentence."""

    model_config = _example(detail="the id is not enrolled.", request="9b2d0f6e6f5c4f0c8f1f3f6a0a1b2c3d")
    detail: str
    request: Annotated[str, Field(description="Number of the request, as in the audit.")]
