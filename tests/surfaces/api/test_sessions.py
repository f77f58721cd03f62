"""Sessions over HTTP: listed, read, named, forked, spoken in and removed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx2
import pytest

from hermes.app.start import start
from hermes.core.commands import Say
from hermes.core.events import ControlsChanged
from hermes.core.session_request import SessionRequest
from hermes.testing.request import Request
from hermes.testing.steps import Step, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, sse


@pytest.fixture
def client(api: Serving) -> Iterator[httpx2.Client]:
    with api.client() as client:
        yield client


def test_a_session_lives_its_life(client: httpx2.Client, model: Model) -> None:
    model.rule = lambda request: says("an answer")
    made = client.post("/api/sessions", json={"id": "life"})
    assert (made.status_code, made.json()["id"]) == (201, "life")
    done = client.post("/api/sessions/life/chat", json={"input": "a question"})
    assert done.json()["output"] == "an answer"
    assert done.json()["session_id"] == "life"
    assert client.post("/api/sessions", json={"id": "life"}).status_code == 409
    named = client.patch("/api/sessions/life", json={"title": "My life"}).json()
    assert (named["title"], named["message_count"]) == ("My life", 2)
    said = client.get("/api/sessions/life/messages").json()["messages"]
    assert [(each["role"], each["text"]) for each in said] == [
        ("user", "a question"),
        ("assistant", "an answer"),
    ]
    later = client.get("/api/sessions/life/messages", params={"after": said[0]["n"]}).json()
    assert [each["role"] for each in later["messages"]] == ["assistant"]
    fork = client.post("/api/sessions/life/fork", json={"title": "Another life"})
    assert (fork.status_code, fork.json()["parent_id"]) == (201, "life")
    listed = client.get("/api/sessions", params={"q": "life"}).json()["sessions"]
    assert {each["id"] for each in listed} == {"life", fork.json()["id"]}
    assert client.delete("/api/sessions/life").status_code == 400
    assert client.delete(f"/api/sessions/{fork.json()['id']}").json()["deleted"] is True
    assert client.delete("/api/sessions/life").status_code == 200
    assert client.get("/api/sessions/life").status_code == 404


def test_a_session_is_created_with_a_title(client: httpx2.Client, model: Model) -> None:
    made = client.post("/api/sessions", json={"title": "  Plans\tfor May "})
    assert (made.status_code, made.json()["title"]) == (201, "Plans for May")
    path = f"/api/sessions/{made.json()['id']}"
    assert client.get(path).json()["title"] == "Plans for May"
    assert client.post(f"{path}/chat", json={"input": "hi"}).json()["output"] == "hello"
    assert client.get(path).json()["message_count"] == 2
    again = client.post("/api/sessions", json={"title": "Plans for May"})
    assert again.json()["title"] == "Plans for May #2"


def test_a_turn_in_a_session_is_streamed(client: httpx2.Client, model: Model) -> None:
    body = {"input": "hi"}
    with client.stream("POST", "/api/sessions/streamed/chat/stream", json=body) as stream:
        names = [name for _, name, _ in sse(stream.iter_lines())]
    assert names[0] == "run.started"
    assert "assistant.delta" in names
    assert names[-1] == "run.completed"


def test_pages_of_sessions_follow_each_other(client: httpx2.Client, model: Model) -> None:
    for n in range(3):
        client.post(f"/api/sessions/page{n}/chat", json={"input": "x"})
    first = client.get("/api/sessions", params={"limit": 2}).json()
    rest = client.get("/api/sessions", params={"limit": 2, "offset": 2}).json()
    assert first["has_more"] is True
    ids = [each["id"] for each in (*first["sessions"], *rest["sessions"])]
    assert ids[:3] == ["page2", "page1", "page0"]
    for wrong in ("-1", "0", "x", "9999999999999999999"):
        assert client.get("/api/sessions", params={"limit": wrong}).status_code == 400


def test_the_server_tells_how_it_is_doing(client: httpx2.Client, model: Model) -> None:
    client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})
    payload = client.get("/health/detailed").json()
    assert payload["status"] == "ok"
    states = dict.fromkeys(("config", "state_db", "store", "disk", "model"), "ok")
    assert payload["readiness"] == states
    assert payload["gateway"] == {"state": "running", "platforms": {"api_server": "connected"}}
    assert (payload["runs"]["active"], payload["runs"]["queued"]) == (0, 0)
    assert payload["background"] == {"processes": 0}
    numbers = client.get("/metrics")
    assert numbers.headers["content-type"].startswith("text/plain")
    line = 'hermes_requests_total{method="POST",route="/v1/chat/completions",status="200"}'
    assert line in numbers.text
    assert "hermes_runs_total" in numbers.text


def test_a_session_is_put_away_and_brought_back(client: httpx2.Client, model: Model) -> None:
    client.post("/api/sessions/away/chat", json={"input": "a word to be found"})
    assert client.patch("/api/sessions/away", json={"archived": True}).json()["archived"] is True

    def ids(**query: str) -> list[str]:
        payload = client.get("/api/sessions", params={"limit": "500", **query}).json()
        return [each["id"] for each in payload["sessions"]]

    assert "away" not in ids()
    assert ids(archived="true") == ["away"]
    assert ids(q="a word to be found") == ["away"]
    assert ids(q="a word to be found", archived="false") == []
    assert client.get("/api/sessions/away").json()["archived"] is True
    client.patch("/api/sessions/away", json={"archived": False})
    assert "away" in ids()
    assert client.get("/api/sessions", params={"archived": "perhaps"}).status_code == 400


def test_a_session_is_named_and_put_away_while_it_works(
    client: httpx2.Client, model: Model
) -> None:
    held = threading.Event()

    def rule(request: Request) -> Step:
        held.wait(30)
        return says("done")

    model.rule = rule
    begun = client.post("/v1/runs", json={"input": "x", "session_id": "working"}).json()
    changed = client.patch("/api/sessions/working", json={"title": "At work", "archived": True})
    held.set()
    assert (changed.json()["title"], changed.json()["archived"]) == ("At work", True)
    with client.stream("GET", f"/v1/runs/{begun['run_id']}/events") as stream:
        assert [name for _, name, _ in sse(stream.iter_lines())][-1] == "run.completed"
    assert client.get("/api/sessions/working").json()["archived"] is True


def test_a_fork_shows_what_it_has_inherited(client: httpx2.Client, model: Model) -> None:
    client.post("/api/sessions/stem/chat", json={"input": "where it began"})
    forked = client.post("/api/sessions/stem/fork", json={}).json()
    assert (forked["preview"], forked["message_count"]) == ("where it began", 2)
    done = client.post(f"/api/sessions/{forked['id']}/chat", json={"input": "on"})
    assert done.status_code == 200
    assert client.get(f"/api/sessions/{forked['id']}").json()["message_count"] == 4


def test_sessions_are_found_by_what_was_said(client: httpx2.Client, model: Model) -> None:
    model.rule = lambda request: says("The quokka lives on Rottnest.")
    client.post("/api/sessions/animals/chat", json={"input": "where do they live?"})
    client.post("/api/sessions/titled/chat", json={"input": "hello"})
    client.patch("/api/sessions/titled", json={"title": "About the numbat"})
    found = client.get("/api/sessions", params={"q": "numbat"}).json()["sessions"]
    assert [each["id"] for each in found] == ["titled"]
    found = client.get("/api/sessions", params={"q": "quokka"}).json()["sessions"]
    assert "animals" in [each["id"] for each in found]
    assert client.get("/api/sessions", params={"q": "zzzquux"}).json()["sessions"] == []


async def test_sessions_that_work_for_others_are_listed_on_request_only(
    api: Serving, client: httpx2.Client
) -> None:
    async with start({}, home=str(api.home)) as app:
        child = await app.open(SessionRequest(source="subagent", attended=False, cwd=str(api.home)))
        await child.send(Say(text="sub work"))
        await child.wait_until_idle()

    def ids(**query: str) -> list[str]:
        payload = client.get("/api/sessions", params={"limit": "500", **query}).json()
        return [each["id"] for each in payload["sessions"]]

    assert child.id not in ids()
    assert child.id in ids(include_children="true")
    assert client.get("/api/sessions", params={"include_children": "2"}).status_code == 400


async def test_the_tier_of_a_request_is_that_of_its_turn_alone(
    api: Serving, client: httpx2.Client, model: Model
) -> None:
    asked = {"messages": [{"role": "user", "content": "x"}], "service_tier": "flex"}
    headers = {"X-Hermes-Session-Id": "tiers"}
    for tier in ("flex", "auto"):
        body = {**asked, "service_tier": tier}
        assert client.post("/v1/chat/completions", json=body, headers=headers).is_success
    async with start({}, home=str(api.home)) as app:
        records = await app.journal.read("tiers")
    tiers = [record.event.tier for record in records if isinstance(record.event, ControlsChanged)]
    assert tiers == ["flex", None]
