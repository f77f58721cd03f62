"""What the server says about itself, and the choices that follow from it."""

from __future__ import annotations

import json
from typing import Any

from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, sse


def offered(model: Model) -> set[str]:
    return {tool["function"]["name"] for tool in model.server.requests[-1].body.get("tools", [])}


def events(api: Serving, run_id: str) -> list[tuple[str, dict[str, Any]]]:
    with (
        api.client() as client,
        client.stream("GET", f"/v1/runs/{run_id}/events") as answer,
    ):
        return [(name, json.loads(data)) for _, name, data in sse(answer.iter_lines())]


def test_toolsets_are_listed_with_the_tools_that_there_are(api: Serving) -> None:
    with api.client() as client:
        payload = client.get("/v1/toolsets").json()
    by_name = {each["name"]: each["tools"] for each in payload["data"]}
    assert by_name["terminal"] == ["process", "terminal"]
    assert "honcho" not in by_name
    assert payload["enabled"] == ["hermes-cli"]
    assert {"terminal", "read_file"} <= set(payload["tools"])


def test_skills_are_listed_by_name(api: Serving, model: Model) -> None:
    with api.client() as client:
        payload = client.get("/v1/skills").json()
    assert payload["object"] == "list"
    assert all(each["name"] and each["description"] for each in payload["data"])
    assert len(payload["data"]) > 5


def test_a_run_may_choose_toolsets_and_has_no_other_tools(api: Serving, model: Model) -> None:
    with api.client() as client:
        begun = client.post("/v1/runs", json={"input": "hi", "toolsets": ["todo", "clarify"]})
        assert begun.status_code == 202
        events(api, begun.json()["run_id"])
        assert offered(model) == {"todo", "clarify"}
        again = {"input": "hi", "session_id": begun.json()["session_id"]}
        events(api, client.post("/v1/runs", json=again).json()["run_id"])
        assert offered(model) == {"todo", "clarify"}
        refused = client.post("/v1/runs", json={**again, "toolsets": ["file"]})
        unknown = client.post("/v1/runs", json={"input": "hi", "toolsets": ["termnal"]})
    for answer in (refused, unknown):
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "toolsets"


def test_a_choice_gives_no_tool_that_the_settings_do_not_give(api: Serving, model: Model) -> None:
    with api.client() as client:
        asked = {"input": "hi", "toolsets": ["honcho", "todo"]}
        begun = client.post("/v1/runs", json=asked).json()
    events(api, begun["run_id"])
    assert offered(model) == {"todo"}


def test_a_run_tells_of_its_plan(api: Serving, model: Model) -> None:
    def plans(request: Request) -> Step:
        if request.body["messages"][-1]["role"] == "tool":
            return says("planned")
        return calls("todo", todos=[{"id": "1", "content": "look", "status": "in_progress"}])

    model.rule = plans
    with api.client() as client:
        begun = client.post("/v1/runs", json={"input": "plan"}).json()
    payload = events(api, begun["run_id"])
    names = [name for name, _ in payload]
    assert names.index("tool.completed") + 1 == names.index("plan.updated")
    plan = dict(payload)["plan.updated"]["plan"]
    assert plan == [{"id": "1", "content": "look", "status": "in_progress"}]


def test_sessions_are_listed_page_by_page(api: Serving, model: Model) -> None:
    with api.client() as client:
        for name in ("page-1", "page-2", "page-3"):
            client.post(f"/api/sessions/{name}/chat", json={"input": "hi"})
        first = client.get("/api/sessions", params={"limit": 2}).json()
        second = client.get("/api/sessions", params={"limit": 1, "offset": 2}).json()
    assert [each["id"] for each in first["sessions"]] == ["page-3", "page-2"]
    assert [each["id"] for each in second["sessions"]] == ["page-1"]
    assert first["has_more"]


def test_a_request_may_say_how_hard_the_model_thinks(api: Serving, model: Model) -> None:
    said = {"messages": [{"role": "user", "content": "hi"}]}
    with api.client() as client:
        for more in ({"reasoning_effort": "high"}, {"model_options": {"reasoning_effort": "high"}}):
            assert client.post("/v1/chat/completions", json=said | more).is_success
        wrong = client.post("/v1/chat/completions", json=said | {"reasoning_effort": "huge"})
    assert wrong.status_code == 400
