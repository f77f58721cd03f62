"""The planner's standard example: search tutorials, summarise the top three, write a learning plan,
schedule practice. The web and the model are servers on this machine."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import InnerCallIntended, ToolFinished
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.plans.planner import RULES
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.web.site import Site, page

PROSE = "Tutorials explain one idea at a time, with a small example for each idea. " * 5
READ_PAGE: JsonObject = {"tool_name": "web_extract", "parameters": {"urls": ["${item.url}"]}}
STEPS: list[JsonObject] = [
    {"step_id": "find", "tool_name": "web_search", "parameters": {"query": "rust tutorials"}},
    {
        "step_id": "pages",
        "tool_name": "map",
        "parameters": {"over": "${find.data.web[0:3]}", "step": READ_PAGE},
    },
    {
        "step_id": "plan",
        "tool_name": "llm",
        "parameters": {"prompt": "Write a learning plan from ${pages}"},
    },
    {
        "step_id": "save",
        "tool_name": "write_file",
        "parameters": {"path": "plan.md", "content": "${plan}\n"},
    },
    {
        "step_id": "practice",
        "tool_name": "cronjob",
        "parameters": {
            "action": "create",
            "schedule": "every 24h",
            "prompt": "Remind me to practise: ${plan}",
        },
        "depends_on": ["save"],
    },
]


def _model(prompts: list[str]) -> ScriptedServer:
    def answer(request: Request) -> Step:
        system = request.messages[0].text
        if system == RULES:
            return says(json.dumps({"steps": STEPS}))
        if system.startswith("You complete one step"):
            prompts.append(request.messages[-1].text)
            return says("Day 1: ownership.")
        return says("Your plan is in plan.md.")

    return ScriptedServer(answer)


def _site() -> Site:
    html = f"<title>T</title><main><h1>T</h1><p>{PROSE}</p></main>".encode()
    pages = {f"/{n}": page(html, content_type="text/html") for n in range(5)}
    return Site(pages)


async def _run(app: App, work: Path) -> tuple[ToolResult, list[str]]:
    """The result of the plan, and the keys of its calls."""
    request = SessionRequest(source="cli", attended=False, cwd=str(work))
    session = await app.open(request)
    goal = "Search tutorials, summarise the top 3, make a learning plan, schedule practice"
    arguments: JsonObject = {"action": "run", "goal": goal, "confirm": "skip"}
    call = ToolCall(id="call_1", name="plan", arguments=arguments)
    results, keys = [], []
    async for record in session.ask(Say(text=goal, calls=(call,))):
        if isinstance(record.event, ToolFinished):
            results.append(record.event.result)
        elif isinstance(record.event, InnerCallIntended):
            keys.append(record.event.key)
    return results[0], keys


async def test_tutorials_become_a_plan_with_practice(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    prompts: list[str] = []
    async with _model(prompts) as server, _site() as site:
        found = {"results": [{"url": site.url(f"/{n}"), "title": f"T{n}"} for n in range(5)]}
        site.pages["/search"] = page(json.dumps(found).encode(), content_type="application/json")
        (home / "config.yaml").write_text(
            "model: {default: m, provider: box}\napprovals: {mode: 'off'}\n"
            f"providers: {{box: {{base_url: '{server.url}/v1'}}}}\n"
            "security: {allow_private_urls: true}\ntoolsets: [hermes-cli, cronjob]\n"
        )
        env = {"SEARXNG_URL": site.url("/").rstrip("/"), "HOME": str(tmp_path)}
        async with App(load(Home(home), env=env), env=env, world=World()) as app:
            result, keys = await _run(app, work)
            again, again_keys = await _run(app, work)
        assert result.details.get("status") == "completed", result.text
        asked = [request.split(b" ")[1].decode().partition("?")[0] for request in site.asked]
    assert (work / "plan.md").read_text() == "Day 1: ownership.\n"
    assert [path for path in asked if path == "/search"] == ["/search"] * 2
    assert {path for path in asked if path[1:].isdigit()} == {"/0", "/1", "/2"}
    assert PROSE.strip()[:60] in prompts[0]
    assert keys == ["draft.0", "find.v1.1", *(f"pages.v1.1.{n}" for n in range(3)),
                    "plan.v1.1", "save.v1.1", "practice.v1.1"]  # fmt: skip
    # A second request does everything anew.
    assert again.details["status"] == "completed"
    assert again_keys == keys
    assert len(prompts) == 2
