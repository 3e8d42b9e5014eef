"""Requests that a fuzzer makes from the OpenAPI document: none is answered with 500, and all answers are as described."""

from __future__ import annotations

import shutil

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

load_all_checks()
# Requests per route and mode; many of them in `make test-slow`.
FEW, MANY = 5, 300
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fuzzed(started, prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(prepared.folder, folder, dirs_exist_ok=True)
    with started(folder) as api:
        yield api


@pytest.mark.parametrize("n_examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as described", "otherwise"])
def test_no_request_breaks_the_service(fuzzed, prepared, mode, n_examples):
    document = schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json")
    key = {"Authorization": f"Bearer {prepared.tokens['admin']}"}
    how = settings(
        max_examples=n_examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
    )
    statuses = []
    operations = [result.ok() for result in document.get_all_operations()]
    assert len(operations) == 12
    for operation in operations:

        @how
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            answer = case.call(headers=key)
            case.validate_response(answer, checks=CHECKS)
            statuses.append(answer.status_code)

        try:
            ask()
        except Exception as error:
            if "Unsatisfiable" not in type(error).__name__:  # what has no parameters cannot be asked for wrongly
                raise
    assert len(statuses) > 5 * n_examples
    assert fuzzed.http.get("/readyz").status_code == 200
