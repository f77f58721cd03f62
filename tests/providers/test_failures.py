from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Reason
from hermes.providers.endpoint import Endpoint
from hermes.providers.failure_patterns import RETRYABLE
from hermes.providers.failures import classify, classify_event, is_malformed, malformed_response
from hermes.providers.profile import ModelProfile
from hermes.providers.retry import AdaptiveProfile

KEY = "sk-very-secret-key-1234"
ENDPOINT = Endpoint(
    name="openrouter", wire="chat", url="https://openrouter.ai/api/v1", model="m", key=KEY
)


def openai(message: str, code: object = None, kind: str = "") -> str:
    return json.dumps({"error": {"message": message, "code": code, "type": kind}})


ROWS: list[tuple[Reason, int, str]] = [
    ("auth", 401, openai("Incorrect API key provided", "invalid_api_key")),
    ("auth", 403, openai("Your key may not use this model")),
    ("auth_permanent", 401, openai("This account was deactivated")),
    ("billing", 402, openai("anything")),
    ("billing", 429, openai("You exceeded your current quota", "insufficient_quota")),
    ("billing", 400, openai("Your credit balance is too low to access the API")),
    ("billing", 403, openai("insufficient credits")),
    ("rate_limit", 429, openai("Rate limit reached for requests")),
    ("rate_limit", 400, openai("RESOURCE_EXHAUSTED: slow down")),
    ("rate_limit", 403, openai("Request was throttled")),
    ("rate_limit", 429, ""),
    ("upstream_rate_limit", 429, openai("Provider returned error")),
    ("upstream_rate_limit", 429, openai("m is temporarily rate-limited upstream")),
    ("overloaded", 503, ""),
    ("overloaded", 529, openai("Overloaded", kind="overloaded_error")),
    ("overloaded", 429, openai("The engine is currently overloaded")),
    ("overloaded", 429, openai("we are at capacity")),
    ("overloaded", 429, openai("busy", "1305")),
    ("server_error", 500, openai("The server had an error")),
    ("server_error", 502, "<html><h1>Bad gateway</h1></html>"),
    ("server_error", 520, ""),
    ("format_error", 500, openai("invalid_request: unknown parameter 'foo'")),
    ("timeout", 504, ""),
    ("timeout", 408, ""),
    ("context_overflow", 400, openai("This model's maximum context length is 32768 tokens")),
    ("context_overflow", 400, openai("prompt is too long: 233153 tokens > 200000 maximum")),
    (
        "context_overflow",
        500,
        openai("exceeds the available context size (n_ctx 4096)"),
    ),
    ("context_overflow", 400, openai("greater than max_model_len")),
    ("payload_too_large", 413, ""),
    ("image_too_large", 400, openai("image exceeds 5 MB maximum")),
    ("model_not_found", 404, openai("not found")),
    ("model_not_found", 400, openai("The model `gpt-9` does not exist")),
    ("model_not_found", 404, openai("No endpoints found that support tool use")),
    ("model_not_found", 400, openai("registry/tiny does not support tools")),
    ("provider_policy_blocked", 404, openai("No endpoints found matching your data policy")),
    ("content_policy_blocked", 400, openai("rejected by our safety system", "content_policy")),
    ("content_policy_blocked", 403, openai("your input was flagged by moderation")),
    ("format_error", 400, openai("messages: invalid value")),
    ("format_error", 422, openai("field required")),
    ("format_error", 307, ""),
]


@pytest.mark.parametrize(("reason", "status", "body"), ROWS)
def test_every_kind_of_failure_has_its_reason(reason: Reason, status: int, body: str) -> None:
    error = classify(ENDPOINT, status=status, body=body)
    assert (error.reason, error.status) == (reason, status)
    assert error.retryable == (reason in RETRYABLE)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "slow down"}, "rate_limit"),
        ({"code": 429, "message": "Provider returned error"}, "upstream_rate_limit"),
        ({"code": "502", "message": "bad"}, "server_error"),
        ({"code": "server_error", "message": "oops"}, "server_error"),
        ({"code": "context_length_exceeded", "message": "too long"}, "context_overflow"),
        ("just words", "unknown"),
        (None, "unknown"),
        ({}, "unknown"),
    ],
)
def test_errors_inside_an_answer_are_told_apart_too(error: object, reason: str) -> None:
    assert classify_event(ENDPOINT, error).reason == reason


def test_an_overflow_teaches_the_window() -> None:
    body = openai("This model's maximum context length is 32768 tokens")
    assert classify(ENDPOINT, status=400, body=body).limit == 32768


def test_the_wait_that_the_server_wants_is_kept() -> None:
    error = classify(ENDPOINT, status=429, body="", headers={"retry-after": "7"})
    assert error.retry_after == 7


def test_the_sentence_says_what_where_and_what_next() -> None:
    error = classify(ENDPOINT, status=401, body=openai("Incorrect API key provided"))
    assert str(error) == (
        "openrouter (openrouter.ai, m) refused the key (HTTP 401): Incorrect API key provided. "
        "Check the key, or choose another provider with `hermes model`."
    )


def test_pages_and_long_bodies_are_not_dumped() -> None:
    page = classify(ENDPOINT, status=502, body="<html>" + "x" * 9000)
    assert "<html>" not in str(page)
    long = classify(ENDPOINT, status=400, body=openai("word " * 1000))
    assert len(str(long)) < 600


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_the_key_is_in_no_error(status: int) -> None:
    error = classify(ENDPOINT, status=status, body=openai(f"Incorrect API key provided: {KEY}"))
    assert KEY not in str(error) + error.body + repr(error)
    assert KEY not in repr(ENDPOINT) + str(ENDPOINT.__rich_repr__())


def test_an_answer_that_makes_no_sense_is_told_from_other_unknowns() -> None:
    assert is_malformed(malformed_response(ENDPOINT, "it is no JSON"))
    assert not is_malformed(classify(ENDPOINT, status=None, body=""))


numbers = st.sampled_from(["9" * 5000, "1.2.3k", "²", "0", "5,_.5", "n_ctx", "max_tokens: 5 > "])
starts = st.sampled_from(["context length is ", "limit of ", "try again in ", "max_tokens <= "])
strange = st.lists(starts | numbers | st.text(max_size=20), max_size=5).map("".join)


@given(st.one_of(st.none(), st.integers(300, 599)), strange, strange)
def test_any_answer_gets_some_reason(status: int | None, body: str, wish: str) -> None:
    headers = {"retry-after": wish, "x-ratelimit-reset": wish}
    error = classify(ENDPOINT, status=status, body=body, headers=headers)
    assert error.reason
    AdaptiveProfile(ModelProfile()).learn(error)
    assert classify_event(ENDPOINT, {"code": wish, "message": body}).reason
