"""The ways by which a secret could get out, each as a story that is played on a stage."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

from hermes.testing.faults import paced
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, fails, says, thinks
from tests.mcp.conftest import LITTLE
from tests.secrecy.calls import CALLS, Calls
from tests.secrecy.canaries import told
from tests.secrecy.far_routes import (
    a_server_that_draws,
    an_editor,
    reports_of_crashes,
    the_name_of_a_model,
)
from tests.secrecy.stage import Stage
from tests.surfaces.api.serving import Serving

PROCESS = re.compile(r"proc_[0-9a-f]+")
Route = Callable[[Stage], None]
DONE = says("That is all.")


def alone(calls_of: Calls) -> Route:
    def route(stage: Stage) -> None:
        stage.talk([*calls_of(stage), DONE])

    route.__name__ = calls_of.__name__
    return route


def calls_of_all_kinds(stage: Stage) -> None:
    """In one session, which takes a tenth of the time of one for each."""
    steps = [step for calls_of in CALLS for step in calls_of(stage)]
    stage.talk([*steps, DONE])
    # What was printed, and a request for each of them.
    assert len(stage.seen) == 2 + len(steps) + 1


def a_background_process(stage: Stage) -> None:
    known: list[str] = []
    actions = iter(("list", "wait", "poll", "log"))

    def model(request: Request) -> Step:
        known.extend(PROCESS.findall(request.last_text))
        if not known:
            return calls("terminal", command="cat notes.txt; sleep 0.1", background=True)
        if action := next(actions, ""):
            return calls("process", action=action, session_id=known[0])
        return DONE

    stage.talk(model)
    assert known


def words_of_everybody(stage: Stage) -> None:
    """Of the project, the person and the model, in two turns of one session."""
    text = told(stage.canaries)
    stage.work.joinpath("AGENTS.md").write_text(text)
    stage.home.joinpath("SOUL.md").write_text("You are terse.\n")
    stage.talk([paced(thinks(text, then=says(text)), chunk=5)], say=text)
    stage.talk([paced(says(text), chunk=0)], "--continue")


def context_files(stage: Stage) -> None:
    stage.work.joinpath("AGENTS.md").write_text(told(stage.canaries))
    stage.home.joinpath("SOUL.md").write_text("You are terse.\n")
    stage.talk([DONE])


def what_the_person_says(stage: Stage) -> None:
    stage.talk([DONE], say=told(stage.canaries))


def what_the_model_says(stage: Stage) -> None:
    words = told(stage.canaries)
    stage.talk([paced(says(words), chunk=5)])
    stage.talk([paced(says(words), chunk=0)], "--continue")


def what_the_model_thinks(stage: Stage) -> None:
    stage.talk([paced(thinks(told(stage.canaries), then=DONE), chunk=7)])


def errors_of_the_server(stage: Stage) -> None:
    words = told(stage.canaries)
    for status in (400, 401):
        stage.talk([fails(status, message=words)] * 4)


def death_and_resumption(stage: Stage) -> None:
    steps = [calls("terminal", command="cat notes.txt"), DONE]
    words = told(stage.canaries)
    for point, options in (("tool.effect", ()), ("turn.ending", ("--continue",))):
        died = {"HERMES_TESTING": "1", "HERMES_KILL_AT": point}
        assert stage.talk(steps, *options, say=words, more=died).returncode == -9
    stage.talk([DONE], "--continue", say="Go on.")


def looking_back(stage: Stage) -> None:
    steps = [calls("terminal", command="cat notes.txt; exit 3"), says(told(stage.canaries))]
    stage.talk(steps, "--usage-file", str(stage.home / "usage.json"), say=told(stage.canaries))
    stage.look("sessions", "rename", "--", _newest(stage), told(stage.canaries)[:60])
    session, shared = _newest(stage), str(stage.home / "shared.gz")
    for words in (
        ("sessions", "export", "-"),
        ("sessions", "export", "-", "--format", "md", "--session-id", session),
        ("sessions", "export", shared, "--format", "replay", "--session-id", session),
        ("sessions", "show", session, "--json"),
        ("sessions", "search", "notes", "--json"),
        ("trace", session),
        ("policy", "log", session),
        ("config", "show"),
    ):
        stage.look(*words)


def _newest(stage: Stage) -> str:
    listed = stage.look("sessions", "list", "--json", "--limit", "1").stdout
    return listed.split(b'"id":"', 1)[1].split(b'"', 1)[0].decode()


PLUGIN = """
import sys

def leak(args, **kw):
    print(args["text"], file=sys.stderr, flush=True)
    if args.get("fail"):
        raise ValueError(args["text"])
    return args["text"]

def watch(**kw):
    print(repr(kw), file=sys.stderr, flush=True)
    return None

def register(ctx):
    ctx.register_tool("leak", "test", {"description": "Say it.", "parameters": {}}, leak)
    for hook in ("pre_llm_call", "pre_tool_call", "post_tool_call"):
        ctx.register_hook(hook, watch)
"""


def a_plugin(stage: Stage) -> None:
    """What it says, what it raises and what it writes aside."""
    folder = stage.home / "plugins" / "leaky"
    folder.mkdir(parents=True)
    hooks = "[pre_llm_call, pre_tool_call, post_tool_call]"
    (folder / "plugin.yaml").write_text(
        f"name: leaky\nprovides_tools: [leak]\nprovides_hooks: {hooks}\n"
    )
    (folder / "__init__.py").write_text(PLUGIN)
    assert b"leaky is on" in stage.look("plugins", "enable", "leaky").stdout
    text = told(stage.canaries)
    given = ({"text": text}, {"text": text, "fail": True})
    uses = [calls("tool_call", name="leak", arguments=each) for each in given]
    stage.talk([*uses, says(text)], say=text)
    stage.look("plugins", "list")
    stage.look("logs")


def programs_of_the_person(stage: Stage) -> None:
    """Hooks: what they are told, and what they say to the model, to the log and as reasons."""
    text = json.dumps(told(stage.canaries))
    said = {
        "pre_llm_call": f'{{"context": {text}}}',
        "pre_tool_call": f'{{"action": "block", "message": {text}}}',
        "transform_llm_output": f'{{"text": {text}}}',
    }
    lines = []
    for event, words in said.items():
        program = stage.home / f"on-{event}"
        body = f"cat >> {stage.home}/told-to-hooks\ncat <<'END' | tee /dev/stderr\n{words}\nEND\n"
        program.write_text(f"#!/bin/sh\n{body}")
        program.chmod(0o755)
        lines.append(f"  {event}: [{{command: '{program}'}}]")
    with stage.home.joinpath("config.yaml").open("a") as config:
        config.write("hooks_auto_accept: true\nhooks:\n" + "\n".join(lines) + "\n")
    stage.talk([calls("terminal", command="cat notes.txt"), says(told(stage.canaries))])
    assert (stage.home / "told-to-hooks").exists()
    stage.look("logs")
    for event in said:
        (stage.home / f"on-{event}").unlink()


def a_server_of_tools(stage: Stage) -> None:
    """What it answers, how it fails, what it sees of the environment and writes aside."""
    server = {"command": sys.executable, "args": ["-S", "-E", str(LITTLE)]}
    with stage.home.joinpath("config.yaml").open("a") as config:
        config.write(f"mcp_servers: {json.dumps({'little': server})}\n")
    text = told(stage.canaries)
    given = {"echo": {"text": text}, "environment": {}, "fail": {"text": text}, "no_such": {}}
    uses = [
        calls("tool_call", name=f"mcp_little_{name}", arguments=each)
        for name, each in given.items()
    ]
    prompt = {"name": "greet", "arguments": {"name": text}}
    stage.talk([*uses, calls("tool_call", name="mcp_little_get_prompt", arguments=prompt), DONE])
    stage.look("mcp", "list")
    stage.look("logs")


def the_api(stage: Stage) -> None:
    """Answers, streams, errors and figures of the server."""
    text = told(stage.canaries)
    steps = [calls("terminal", command="cat notes.txt"), says(text)] * 3
    steps += [fails(400, message=text)] * 6
    with ScriptedServer.in_thread(steps, strict=False) as model:
        serving = Serving(stage.home, env={**stage.env(model), "HERMES_YOLO_MODE": "1"})
        serving.up()
        try:
            _asked_over_http(stage, serving, text)
        finally:
            serving.down()
        stage.see_requests(model, text)
    stage.seen.append((stage.home.parent / "serve.err").read_bytes())


def _asked_over_http(stage: Stage, serving: Serving, text: str) -> None:
    said = [{"role": "user", "content": text}]
    with serving.client() as client:
        for body in (
            {"model": "test", "messages": said},
            {"model": "test", "messages": said, "stream": True},
            {"model": text[:60], "messages": said},
            {"model": "test", "messages": text},
            {"model": "test", "messages": said, "tools": text},
        ):
            stage.seen.append(client.post("/v1/chat/completions", json=body).content)
        stage.seen.append(client.post("/v1/responses", json={"input": text}).content)
        for path in ("/metrics", "/health/detailed", "/v1/models", "/api/sessions"):
            stage.seen.append(client.get(path).content)


_OWN: tuple[Route, ...] = (
    a_background_process,
    errors_of_the_server,
    death_and_resumption,
    looking_back,
    a_plugin,
    programs_of_the_person,
    a_server_of_tools,
    the_api,
    an_editor,
    a_server_that_draws,
    reports_of_crashes,
    the_name_of_a_model,
)
# Every way out in few runs of the program, and each by itself.
TOGETHER: tuple[Route, ...] = (calls_of_all_kinds, words_of_everybody, *_OWN)
APART: tuple[Route, ...] = (
    *map(alone, CALLS),
    context_files,
    what_the_person_says,
    what_the_model_says,
    what_the_model_thinks,
    *_OWN,
)
