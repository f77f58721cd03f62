"""What a strict server does with a request that its wire forbids."""

from __future__ import annotations

import httpx2
import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says

VERSION = {"anthropic-version": "2023-06-01"}

RAW_WRONGS = [
    (b'{"model": "m"', "the body is not JSON"),
    (b"[1]", "not a JSON object"),
    (b"{}", "the body is an empty object"),
    (b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}', "a lone surrogate?"),
    (
        b'{"model":"m","messages":[{"role":"user","content":"\xed\xa0\x80"}]}',
        "a lone surrogate?",
    ),
]


@pytest.mark.parametrize(("raw", "reason"), RAW_WRONGS)
async def test_bytes_that_cannot_be_read_are_refused(raw: bytes, reason: str) -> None:
    async with (
        ScriptedServer([says("x")]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(f"{server.url}/v1/chat/completions", content=raw)
    assert answer.status_code == 400
    assert reason in server.violations[0].reason
    assert server.requests[0].raw == raw
    assert server.steps_left == 1


@pytest.mark.unjudged
async def test_a_violation_is_answered_in_the_words_of_the_wire() -> None:
    async with (
        ScriptedServer([says("x")]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(f"{server.url}/v1/messages", json={"model": "m"}, headers=VERSION)
    reasons = ["max_tokens: field required", "messages: a non-empty list is required"]
    assert [violation.reason for violation in server.violations] == reasons
    assert answer.status_code == 400
    assert answer.json()["error"] == {
        "type": "invalid_request_error",
        "message": "; ".join(reasons),
    }


@pytest.mark.unjudged
async def test_a_lenient_server_answers_all_the_same() -> None:
    async with (
        ScriptedServer([says("x")], strict=False) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(f"{server.url}/v1/chat/completions", json={"messages": []})
    assert answer.json()["choices"][0]["message"]["content"] == "x"
    assert server.violations == []
