"""One token may speak for several people: each session key has conversations and memory of its
own."""

from __future__ import annotations

from typing import Any

from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving

PATH = "/v1/chat/completions"
KEY = "X-Hermes-Session-Key"


def body(*said: str) -> dict[str, Any]:
    """A conversation in turns of both sides, the last words those of the user."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]}


def remembers(request: Request) -> Step:
    last = request.body["messages"][-1]
    if last["role"] == "tool" or "remember" not in last["content"]:
        return says("noted")
    return calls("memory", action="add", target="memory", content="Ann likes plums.")


def system(model: Model) -> str:
    return str(model.server.requests[-1].body["messages"][0]["content"])


def test_what_one_person_had_remembered_is_shown_to_nobody_else(api: Serving, model: Model) -> None:
    model.rule = remembers
    with api.client() as client:
        done = client.post(PATH, json=body("remember plums"), headers={KEY: "ann"})
        assert (done.status_code, done.headers[KEY]) == (200, "ann")
        client.post(PATH, json=body("hello, it is Ann"), headers={KEY: "ann"})
        assert "plums" in system(model)
        client.post(PATH, json=body("hello, it is Bob"), headers={KEY: "bob"})
        assert "plums" not in system(model)
        client.post(PATH, json=body("hello, it is me"))
        assert "plums" not in system(model)


def test_the_same_words_of_two_people_are_two_sessions(api: Serving, model: Model) -> None:
    model.rule = lambda request: says("one")
    with api.client() as client:

        def sessions_of(key: str) -> list[str]:
            return [
                client.post(PATH, json=said, headers={KEY: key}).json()["hermes"]["session_id"]
                for said in (body("same words"), body("same words", "one", "and then?"))
            ]

        carl, dora = sessions_of("carl"), sessions_of("dora")
    assert carl[0] == carl[1]
    assert dora[0] == dora[1]
    assert carl[0] != dora[0]


def test_a_session_of_somebody_else_is_not_there(api: Serving, model: Model) -> None:
    with api.client() as client:
        named = {"X-Hermes-Session-Id": "ann-1"}
        assert client.post(PATH, json=body("hi"), headers={**named, KEY: "ann"}).is_success
        assert client.post(PATH, json=body("hi"), headers={**named, KEY: "ann"}).is_success
        refused = client.post(PATH, json=body("hi"), headers={**named, KEY: "bob"})
        assert refused.status_code == 404


def test_each_person_has_conversations_of_any_name(api: Serving, model: Model) -> None:
    asked = {"input": "hi", "conversation": "daily"}
    with api.client() as client:
        first = client.post("/v1/responses", json=asked, headers={KEY: "eve"})
        other = client.post("/v1/responses", json=asked, headers={KEY: "fay"})
        again = client.post("/v1/responses", json=asked, headers={KEY: "eve"})
        hidden = client.get(f"/v1/responses/{first.json()['id']}", headers={KEY: "fay"})
    ids = [each.json()["hermes"]["session_id"] for each in (first, other, again)]
    assert ids[0] == ids[2] != ids[1]
    assert hidden.status_code == 404


def test_a_key_that_is_too_long_or_not_visible_is_refused(api: Serving, model: Model) -> None:
    with api.client() as client:
        for key in ("k" * 257, "a\tb"):
            refused = client.get("/v1/models", headers={KEY: key})
            assert refused.status_code == 400
            assert refused.json()["error"]["code"] == "invalid_session_key"
        assert client.get("/v1/models", headers={KEY: "k" * 256}).is_success
