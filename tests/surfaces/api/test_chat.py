"""Conversations over stateless requests: found again, forked, adopted, interrupted, detached."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from hermes.testing.faults import hangs, paced
from hermes.testing.request import Request
from hermes.testing.steps import Break, Pace, Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, sse

PATH = "/v1/chat/completions"


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def counts(request: Request) -> Step:
    """The answer says how many messages of people and of the model came before."""
    said = [each["role"] for each in request.body["messages"] if each["role"] != "system"]
    return says(f"{len(said)} messages")


@pytest.fixture
def client(api: Serving) -> Iterator[httpx2.Client]:
    with api.client() as client:
        yield client


def ask(client: httpx2.Client, *messages: dict[str, str], **headers: str) -> httpx2.Response:
    done = client.post(PATH, json={"messages": list(messages)}, headers=headers)
    assert done.status_code == 200, done.text
    return done


def text_of(done: httpx2.Response) -> str:
    return str(done.json()["choices"][0]["message"]["content"])


def session_of(done: httpx2.Response) -> str:
    return done.headers["x-hermes-session-id"]


def until(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.05)
    return found


def test_one_conversation_is_one_session(client: httpx2.Client, model: Model) -> None:
    model.rule = counts
    first = ask(client, user("a"))
    second = ask(client, user("a"), assistant(text_of(first)), user("b"))
    third = ask(
        client,
        user("a"),
        assistant(text_of(first)),
        user("b"),
        assistant(f" {text_of(second)}\n"),
        user("c"),
    )
    assert text_of(third) == "5 messages"
    assert session_of(first) == session_of(second) == session_of(third)


def test_a_turn_with_tools_is_gone_on_with_in_its_session(
    client: httpx2.Client, model: Model
) -> None:
    model.rule = lambda request: says("done") if request.results else calls("todo", todos=[])
    first = ask(client, user("work"))
    second = ask(client, user("work"), assistant(text_of(first)), user("more"))
    assert session_of(first) == session_of(second)


def test_asking_again_for_an_answer_forks(client: httpx2.Client, model: Model) -> None:
    model.rule = counts
    first = ask(client, user("a1"))
    history = (user("a1"), assistant(text_of(first)))
    second = ask(client, *history, user("b"))
    again = ask(client, *history, user("b"))
    assert session_of(second) == session_of(first)
    assert session_of(again) != session_of(first)
    assert text_of(second) == text_of(again) == "3 messages"
    parent = client.get(f"/api/sessions/{session_of(again)}").json()["parent_id"]
    assert parent == session_of(first)


def test_an_unknown_history_is_taken_over(client: httpx2.Client, model: Model) -> None:
    model.rule = counts
    done = ask(client, user("old"), assistant("times"), user("now"))
    assert text_of(done) == "3 messages"
    said = client.get(f"/api/sessions/{session_of(done)}/messages").json()["messages"]
    assert [each["text"] for each in said] == ["old", "times", "now", "3 messages"]


def test_another_system_text_is_another_conversation(client: httpx2.Client, model: Model) -> None:
    seen: list[str] = []

    def rule(request: Request) -> Step:
        seen.append(str(request.body["messages"][0]["content"]))
        return says("ok")

    model.rule = rule
    system = {"role": "system", "content": "Speak like a pirate."}
    first = ask(client, system, user("s1"))
    second = ask(client, user("s1"))
    assert session_of(first) != session_of(second)
    assert "pirate" in seen[0] and "pirate" not in seen[1]


def test_a_named_session_has_its_own_history(client: httpx2.Client, model: Model) -> None:
    model.rule = counts
    header = {"X-Hermes-Session-Id": "my.chat:1"}
    first = ask(client, user("a"), **header)
    second = ask(client, user("made up"), assistant("made up"), user("b"), **header)
    assert session_of(first) == session_of(second) == "my.chat:1"
    assert text_of(second) == "3 messages"


def test_requests_in_one_session_are_answered_one_after_the_other(
    api: Serving, model: Model
) -> None:
    model.rule = counts

    async def all_at_once() -> list[str]:
        async with api.async_client() as client:
            done = await asyncio.gather(
                *(
                    client.post(
                        PATH,
                        json={"messages": [user(f"m{n}")]},
                        headers={"X-Hermes-Session-Id": "crowded"},
                    )
                    for n in range(4)
                )
            )
        return sorted(text_of(each) for each in done)

    assert asyncio.run(all_at_once()) == [f"{n} messages" for n in (1, 3, 5, 7)]


@pytest.mark.parametrize("wish", ["interrupt", "detach"])
def test_a_client_that_goes_away_decides_what_becomes_of_the_turn(
    api: Serving, model: Model, wish: str
) -> None:
    slow = paced(says("word " * 40), chunk=5, first_seconds=0.2, between_seconds=0.05)
    # One that is to be interrupted never comes to its end by itself.
    model.rule = lambda request: slow if wish == "detach" else hangs(slow, after_chunks=8)
    with api.client() as client:
        body = {"messages": [user(f"tell me, {wish}")], "stream": True}
        headers = {"X-Hermes-On-Disconnect": wish}
        with client.stream("POST", PATH, json=body, headers=headers) as stream:
            run_id = stream.headers["x-hermes-run-id"]
            for _, _, data in sse(stream.iter_lines()):
                if "word" in data:
                    break
    with api.client() as client:
        done = until(
            lambda: (
                found
                if (found := client.get(f"/v1/runs/{run_id}").json())["status"]
                in ("completed", "cancelled")
                else None
            )
        )
    if wish == "detach":
        assert (done["status"], done["output"]) == ("completed", "word " * 40)
    else:
        assert done["status"] == "cancelled"
        assert done["output"] and ("word " * 40).startswith(done["output"])


def test_a_retry_of_the_model_does_not_double_the_words(api: Serving, model: Model) -> None:
    def rule(request: Request) -> Step:
        """Cut off in the middle, and asked to go on from there."""
        if request.body["messages"][-1]["content"] == "r":
            broken = Break(how="cut", after_chunks=4)
            return Step(text="one two three four five", pace=Pace(chunk=4), breaks=broken)
        return says("e four five")

    model.rule = rule
    with (
        api.client() as client,
        client.stream("POST", PATH, json={"messages": [user("r")], "stream": True}) as stream,
    ):
        payload = list(sse(stream.iter_lines()))
    chunks = [json.loads(data) for _, name, data in payload if not name and data != "[DONE]"]
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks)
    assert text == "one two three four five"


def test_the_token_of_the_server_is_shown_to_nobody_but_whom_the_client_tells(
    api: Serving, model: Model
) -> None:
    heard: list[str] = []

    def rule(request: Request) -> Step:
        heard.append(str(request.body["messages"]))
        return says(f"it is {api.token}, is it not?")

    model.rule = rule
    with api.client() as client:
        done = client.post(PATH, json={"messages": [user(f"my token is {api.token}")]})
    assert api.token not in done.text
    assert "is it not?" in text_of(done)
    assert f"my token is {api.token}" in heard[0]
    shown = client_history(api)
    assert api.token not in shown and "[secret:" in shown


def client_history(api: Serving) -> str:
    """The messages of the newest session."""
    with api.client() as client:
        newest = client.get("/api/sessions", params={"limit": 1}).json()["sessions"][0]["id"]
        return client.get(f"/api/sessions/{newest}/messages").text


@pytest.mark.slow
def test_a_silent_stream_is_kept_alive(api: Serving, model: Model) -> None:
    model.rule = lambda request: Step(text="at last", pace=Pace(first_seconds=32))
    body = {"stream": True, "messages": [{"role": "user", "content": "take your time"}]}
    with (
        api.client() as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        lines = list(answer.iter_lines())
    assert lines.count(": keepalive") == 2
    assert lines[-2] == "data: [DONE]"
