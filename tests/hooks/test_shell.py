"""Programs as hooks: what they read, what they may say, and who allowed them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.hooks.shell import (
    HookAllowlist,
    ShellCallback,
    ShellHook,
    hash_files,
    is_allowed,
    parse_answer,
    run_hook,
)
from tests.durability.observing import eventually

ENV = {"PATH": os.environ["PATH"]}


def program(folder: Path, text: str, name: str = "hook.sh") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def hook(command: str, event: str = "pre_tool_call", **more: object) -> ShellHook:
    return ShellHook(event=event, command=command, **more)  # type: ignore[arg-type]


async def test_a_program_reads_what_happens_as_json(tmp_path: Path) -> None:
    command = program(tmp_path, f"cat > {tmp_path}/heard")
    payload = {
        "tool_name": "terminal",
        "args": {"command": "ls"},
        "session_id": "s1",
        "cwd": str(tmp_path),
        "turn_id": "t1",
    }
    ran = await run_hook(hook(command), payload, env=ENV)
    assert (ran.code, ran.answer) == (0, None)
    assert json.loads((tmp_path / "heard").read_text()) == {
        "hook_event_name": "pre_tool_call",
        "tool_name": "terminal",
        "tool_input": {"command": "ls"},
        "session_id": "s1",
        "cwd": str(tmp_path),
        "extra": {"turn_id": "t1"},
    }


async def test_a_program_runs_in_the_folder_of_the_session_with_the_given_environment(
    tmp_path: Path,
) -> None:
    command = program(tmp_path, "pwd; env | cut -d= -f1 | sort | tr '\\n' ' '")
    ran = await run_hook(hook(command), {"cwd": str(tmp_path)}, env={**ENV, "ONE": "1"})
    place, names = ran.output.splitlines()
    assert place == str(tmp_path)
    assert set(names.split()) - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "ONE"}


async def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    command = program(tmp_path, 'printf "%s|" "$@"')
    words = f"{command} 'a b' $HOME ; touch {tmp_path}/made && x `id`"
    ran = await run_hook(hook(words), {}, env=ENV)
    assert ran.output == f"a b|$HOME|;|touch|{tmp_path}/made|&&|x|`id`|"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("event", "code", "output", "errors", "meaning"),
    [
        ("pre_tool_call", 2, "", "No.\n", {"action": "block", "message": "No."}),
        ("pre_tool_call", 0, '{"decision":"block","reason":"R"}', "",
         {"action": "block", "message": "R"}),
        ("pre_tool_call", 0, '{"action":"block","message":"M"}', "",
         {"action": "block", "message": "M"}),
        ("pre_tool_call", 0, '{"action":"approve"}', "", {"action": "approve"}),
        ("pre_tool_call", 0, '{"context":"c"}', "", None),
        ("pre_llm_call", 0, '{"context":"c"}', "", {"context": "c"}),
        ("transform_tool_result", 0, '{"text":"t"}', "", "t"),
        ("pre_tool_call", 1, '{"action":"block"}', "", None),
        ("pre_tool_call", 0, "hello", "", None),
        ("pre_tool_call", 0, "[1]", "", None),
        ("pre_tool_call", 0, "", "", None),
    ],
)  # fmt: skip
def test_what_a_program_may_say(
    event: str, code: int, output: str, errors: str, meaning: object
) -> None:
    assert parse_answer(event, code, output, errors) == meaning


async def test_a_program_that_does_not_end_in_time_is_ended() -> None:
    ran = await run_hook(hook("sleep 600", timeout=0.2), {}, env=ENV)
    assert (ran.code, ran.answer) == (None, None)


async def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    command = program(tmp_path, f"sleep 600 & echo $! > {child}.new; mv {child}.new {child}; wait")
    work = asyncio.ensure_future(run_hook(hook(command), {}, env=ENV))
    await eventually(child.exists)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await eventually(lambda: _state(int(child.read_text())) in "ZX")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


async def test_neither_deaf_nor_talkative_programs_hold_anybody_up(tmp_path: Path) -> None:
    deaf = program(tmp_path, "exec 0<&-; exit 0", "deaf")
    ran = await run_hook(hook(deaf), {"x": "y" * 1_000_000}, env=ENV)
    assert ran.code == 0
    talkative = program(tmp_path, "head -c 3000000 /dev/zero", "talkative")
    ran = await run_hook(hook(talkative), {}, env=ENV)
    assert (ran.code, len(ran.output)) == (0, 1_000_000)


async def test_only_what_was_allowed_as_it_is_runs(tmp_path: Path) -> None:
    command = program(tmp_path, f"echo x >> {tmp_path}/ran; exit 2")
    consents = HookAllowlist(tmp_path / "home" / "allowed.json")
    callback = ShellCallback(hook(command), consents, env=ENV)
    with pytest.raises(ConfigError, match="not allowed"):
        await callback(tool_name="terminal")
    consents.allow("pre_tool_call", command, at=1.0)
    assert stat.S_IMODE((tmp_path / "home" / "allowed.json").stat().st_mode) == 0o600
    assert await callback(tool_name="terminal") == {"action": "block", "message": ""}
    assert not is_allowed(hook(command, "post_tool_call"), consents)
    program(tmp_path, f"echo x >> {tmp_path}/ran; exit 2  # changed")
    with pytest.raises(ConfigError, match="its files changed after you allowed it"):
        await callback(tool_name="terminal")
    consents.allow("pre_tool_call", command, at=2.0)
    assert await callback(tool_name="terminal") is not None
    assert (consents.revoke(command), consents.revoke(command)) == (1, 0)
    with pytest.raises(ConfigError):
        await callback(tool_name="terminal")
    assert (tmp_path / "ran").read_text() == "x\n" * 2


def test_every_file_that_a_command_names_is_looked_into(tmp_path: Path) -> None:
    script = program(tmp_path, "true", "check.py")
    assert list(hash_files(f"python3 {script} --fast")) == [script]
    assert hash_files("true") == {}


def test_a_damaged_list_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "allowed.json").write_text("{")
    with pytest.raises(ConfigError, match="fix or remove it"):
        is_allowed(hook("true"), HookAllowlist(tmp_path / "allowed.json"))


async def test_a_matcher_is_about_the_whole_name_of_a_tool(tmp_path: Path) -> None:
    command = program(tmp_path, "exit 2")
    consents = HookAllowlist(tmp_path / "allowed.json")
    consents.allow("pre_tool_call", command, at=1.0)
    callback = ShellCallback(hook(command, matcher="terminal|write_.*"), consents, env=ENV)
    heard = [name for name in ("terminal", "terminal2", "write_file", "read_file")
             if await callback(tool_name=name)]  # fmt: skip
    assert heard == ["terminal", "write_file"]
