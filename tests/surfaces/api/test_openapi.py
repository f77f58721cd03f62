"""The description of the server is good enough to be used against it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok

from hermes.surfaces.api.routes import ROUTES, document
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving

Case = schemathesis.Case[Any]
DOCUMENT = json.loads(json.dumps(document(ROUTES)))
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def line(api: Serving, shared_model: Model) -> Iterator[httpx2.Client]:
    with api.client() as client:
        yield client


def test_the_server_serves_its_description(line: httpx2.Client) -> None:
    assert line.get("/v1/openapi.json").json() == DOCUMENT


def examples(count: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


def check(case: Case, api: Serving) -> None:
    """Whatever is wrong with a request is named in the envelope; 501 is a server without jobs, 502
    a model that fails."""
    answer = case.call(base_url=api.url, headers=api.headers, timeout=60)
    if answer.status_code not in (501, 502):
        case.validate_response(answer, checks=[not_a_server_error])
    payload: Any = answer.json() if "json" in str(answer.headers.get("content-type")) else {}
    if answer.status_code >= 400:
        assert set(payload["error"]) == {"message", "type", "param", "code"}


@SCHEMA.parametrize()
@examples(2)
def test_no_request_breaks_the_server(case: Case, api: Serving) -> None:
    check(case, api)


@pytest.mark.slow
@pytest.mark.parametrize("mode", GenerationMode)
def test_none_of_many_requests_breaks_the_server(mode: GenerationMode, api: Serving) -> None:
    for found in SCHEMA.get_all_operations():
        assert isinstance(found, Ok)

        @examples(60)
        @hypothesis.given(case=found.ok().as_strategy(generation_mode=mode))
        def ask(case: Case) -> None:
            check(case, api)

        # Nothing can be wrong about a request that has no part to fill in.
        with suppress(Unsatisfiable):
            ask()
