"""The same hooks in the same order, whatever way a person talks to the program."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.observing import eventually
from tests.durability.stage import Stage
from tests.hooks.programs import Programs
from tests.surfaces.api.serving import serving

STEPS: tuple[Step, ...] = (calls("terminal", command="touch one"), says("Ran."))
ORDER = [
    "on_session_start",
    "pre_llm_call",
    "pre_api_request",
    "post_api_request",
    "pre_tool_call",
    "transform_terminal_output",
    "post_tool_call",
    "transform_tool_result",
    "pre_api_request",
    "post_api_request",
    "transform_llm_output",
    "post_llm_call",
    "on_session_end",
]


@pytest.fixture
def watching(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "hooks", {event: {} for event in ORDER})


async def test_one_shot(tmp_path: Path, watching: Programs) -> None:
    async with ScriptedServer(STEPS) as server:
        stage = Stage(tmp_path / "stage", server, settings=watching.settings)
        ended = await stage.ask("Go.")
    assert (ended.code, ended.out) == (0, "Ran.\n")
    assert watching.ran == ORDER


async def test_a_program(tmp_path: Path, watching: Programs) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(watching.settings)
    with ScriptedServer.in_thread(STEPS) as server:
        agent = AIAgent(
            model="test",
            base_url=f"{server.url}/v1",
            api_key="k",
            home=tmp_path / "home",
            cwd=tmp_path,
        )
        assert await asyncio.to_thread(agent.chat, "Go.") == "Ran."
        await asyncio.to_thread(agent.close)
    assert watching.ran == ORDER


async def test_the_api(tmp_path: Path, watching: Programs) -> None:
    with (
        ScriptedServer.in_thread(STEPS) as server,
        serving(tmp_path, server.url, settings=watching.settings) as api,
    ):
        async with api.async_client() as client:
            body = {"model": "hermes-agent", "messages": [{"role": "user", "content": "Go."}]}
            answer = await client.post("/v1/chat/completions", json=body)
        assert answer.json()["choices"][0]["message"]["content"] == "Ran."
        await eventually(lambda: len(watching.ran) == len(ORDER))
    assert watching.ran == ORDER


async def test_without_consent_nothing_runs_and_it_is_said(
    tmp_path: Path, watching: Programs
) -> None:
    settings = watching.settings.replace("hooks_auto_accept: true", "hooks_auto_accept: false")
    async with ScriptedServer([*STEPS, *STEPS, *STEPS]) as server:
        stage = Stage(tmp_path / "stage", server, settings=settings)
        ended = await stage.ask("Go.")
        assert watching.ran == []
        assert "is not allowed yet, or has changed" in ended.err
        accepted = await stage.run("--accept-hooks", *stage.asking("Go."))
        assert (accepted.code, accepted.err) == (0, "")
        assert watching.ran == ORDER
        kept = json.loads((stage.home / "shell-hooks-allowlist.json").read_text())
        assert len(kept["allowed"]) == len(set(ORDER))
        await stage.ask("Again.")
        assert watching.ran == ORDER * 2


async def test_a_guard_that_may_not_run_lets_no_call_pass(tmp_path: Path) -> None:
    programs = Programs(tmp_path / "hooks", {"pre_tool_call": {}})
    settings = programs.settings.replace('"}]', '", "fail_closed": true}]')
    settings = settings.replace("hooks_auto_accept: true", "")
    async with ScriptedServer(STEPS) as server:
        stage = Stage(tmp_path / "stage", server, settings=settings)
        ended = await stage.ask("Go.")
        asked = str(server.requests[1].body)
    assert ended.code == 0
    assert "failed; the call is not run without it" in asked
    assert not (stage.work / "one").exists()


async def test_programs_see_no_secret_of_the_environment(tmp_path: Path) -> None:
    folder = tmp_path / "hooks"
    folder.mkdir()
    program = folder / "show"
    program.write_text(f"#!/bin/sh\ncat >/dev/null; env > {folder}/seen\n")
    program.chmod(0o755)
    hooks = {"on_session_start": [{"command": str(program)}]}
    settings = f"hooks: {json.dumps(hooks)}\nhooks_auto_accept: true\n"
    async with ScriptedServer([says("Hi.")]) as server:
        stage = Stage(tmp_path / "stage", server, settings=settings)
        await stage.ask("Go.")
    seen = (folder / "seen").read_text()
    assert "PATH=" in seen
    assert not [name for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY") if name in seen]
