"""Every way in which a request can be wrong has its own answer, in one envelope."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hermes.testing.faults import hangs
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import fails
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def client(api: Serving) -> Iterator[httpx2.Client]:
    with api.client() as client:
        yield client


def refused(done: httpx2.Response, status: int) -> dict[str, Any]:
    assert done.status_code == status, done.text
    error = done.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert done.headers["x-content-type-options"] == "nosniff"
    assert done.headers["x-request-id"].startswith("req_")
    return dict(error)


def with_part(part: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [part]}]}


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer no"}, {"Authorization": "x"}])
def test_no_or_a_bad_key(api: Serving, header: dict[str, str]) -> None:
    done = httpx2.get(f"{api.url}/v1/models", headers=header, timeout=60)
    assert refused(done, 401)["type"] == "authentication_error"
    assert "bearer" in done.headers["www-authenticate"].lower()


DEEP = b'{"messages":' * 50_000 + b"1" + b"}" * 50_000


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'"x"', b"\xff\xfe", b"null", DEEP, b"[" * 90_000 + b"]" * 90_000]
)
def test_a_body_that_is_no_json_object(client: httpx2.Client, body: bytes) -> None:
    done = client.post(CHAT, content=body, headers={"content-type": "application/json"})
    assert refused(done, 400)["code"] == "invalid_json"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": "hi"},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "user", "content": "  "}]},
        {"messages": [{"role": "nobody", "content": "x"}]},
    ],
)
def test_messages_that_cannot_be_answered(client: httpx2.Client, body: dict[str, Any]) -> None:
    assert refused(client.post(CHAT, json=body), 400)["param"] == "messages"


@pytest.mark.parametrize(
    "extra",
    [
        {"n": 2},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}},
    ],
)
def test_parameters_that_have_no_meaning_here(client: httpx2.Client, extra: dict[str, Any]) -> None:
    error = refused(client.post(CHAT, json=HI | extra), 400)
    assert (error["code"], error["param"]) == ("unsupported_parameter", next(iter(extra)))


def test_a_response_has_no_structured_format(client: httpx2.Client) -> None:
    body = {"input": "hi", "text": {"format": {"type": "json_object"}}}
    assert refused(client.post("/v1/responses", json=body), 400)["param"] == "text.format"


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"functions": [{"name": "f"}]},
        {"response_format": {"type": "text"}},
    ],
)
def test_parameters_that_change_nothing_here(client: httpx2.Client, extra: dict[str, Any]) -> None:
    assert client.post(CHAT, json=HI | extra).status_code == 200


def test_tools_of_clients_are_refused_if_the_settings_say_so(tmp_path: Path) -> None:
    settings = "api_server: {ignore_client_tools: false}"
    with (
        serving(tmp_path, "http://127.0.0.1:9", settings=settings) as server,
        server.client() as client,
    ):
        body = HI | {"tools": [{"type": "function"}]}
        assert refused(client.post(CHAT, json=body), 400)["code"] == "unsupported_parameter"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"file_id": "x"}},
        {"type": "input_file", "file_id": "x"},
        {"type": "input_audio"},
        {},
        {"type": "image_url", "image_url": {"url": "data:text/plain;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
    ],
)
def test_content_that_is_neither_text_nor_picture(
    client: httpx2.Client, part: dict[str, Any]
) -> None:
    error = refused(client.post(CHAT, json=with_part(part)), 400)
    assert error["code"] == "unsupported_content_type"


def test_text_that_is_too_long_is_not_cut(client: httpx2.Client, model: Model) -> None:
    before = len(model.server.requests)
    error = refused(client.post(CHAT, json=with_part({"type": "text", "text": "x" * 65_537})), 400)
    assert error["code"] == "content_too_large"
    assert len(model.server.requests) == before


def test_a_body_that_is_too_large(client: httpx2.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(11):
            yield b" " * 1_000_000

    whole = client.post(
        CHAT, content=b" " * 11_000_000, headers={"content-type": "application/json"}
    )
    assert refused(whole, 413)["type"] == "payload_too_large"
    chunked = client.post(CHAT, content=pieces(), headers={"content-type": "application/json"})
    assert refused(chunked, 413)["code"] == "body_too_large"


def test_an_unknown_previous_response(client: httpx2.Client) -> None:
    body = {"input": "x", "previous_response_id": "resp_unknown"}
    assert refused(client.post("/v1/responses", json=body), 404)["param"] == "previous_response_id"


def test_two_ways_to_go_on(client: httpx2.Client) -> None:
    body = {"input": "x", "previous_response_id": "resp_1", "conversation": "c"}
    refused(client.post("/v1/responses", json=body), 400)


def test_an_origin_that_is_not_allowed(client: httpx2.Client) -> None:
    done = client.post(CHAT, json=HI, headers={"Origin": "https://evil.example"})
    refused(done, 403)
    assert not [name for name in done.headers if name.startswith("access-control")]


def test_an_unknown_path_and_a_wrong_method(client: httpx2.Client) -> None:
    assert refused(client.get("/v1/nothing"), 404)["code"] == "unknown_path"
    wrong = client.get(CHAT)
    assert refused(wrong, 405)["code"] == "method_not_allowed"
    assert wrong.headers["allow"] == "POST"


def test_a_body_that_is_no_json_by_its_type(client: httpx2.Client) -> None:
    done = client.post(CHAT, content=json.dumps(HI), headers={"content-type": "text/plain"})
    refused(done, 415)
    packed = client.post(CHAT, json=HI, headers={"content-encoding": "gzip"})
    refused(packed, 415)


@pytest.mark.parametrize("id", ["..", ".", "-a", "a b", "a/b", "x" * 129, "ä"])
def test_session_ids_that_are_none(client: httpx2.Client, id: str) -> None:
    headers = [(b"x-hermes-session-id", id.encode("latin-1"))]
    error = refused(client.post(CHAT, json=HI, headers=headers), 400)
    assert error["code"] == "invalid_session_id"


def test_a_model_that_fails_is_a_bad_gateway(client: httpx2.Client, model: Model) -> None:
    model.rule = lambda request: fails(400, "no such thing")
    done = client.post(CHAT, json=HI)
    refused(done, 502)
    assert done.headers["x-should-retry"] == "false"
    streamed = client.post(CHAT, json={**HI, "stream": True}).text
    assert '"error"' in streamed and streamed.endswith("data: [DONE]\n\n")


def test_one_run_too_many(tmp_path: Path) -> None:
    settings = "api_server: {max_concurrent_runs: 10, queue_seconds: 1}"
    with (
        ScriptedServer.in_thread(lambda request: hangs(), strict=False) as model,
        serving(tmp_path, model.url, settings=settings) as server,
    ):

        async def crowd() -> None:
            async with server.async_client() as client:
                made = await asyncio.gather(
                    *(client.post("/v1/runs", json={"input": f"{n}"}) for n in range(10))
                )
                assert [each.status_code for each in made] == [202] * 10
                late = await client.post(CHAT, json=HI)
                assert refused(late, 429)["type"] == "rate_limit"
                assert late.headers["retry-after"] == "5"

        asyncio.run(crowd())
