"""`hermes hooks`: what is set, trying it, taking it back, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.cli.terminal import Terminal


@pytest.fixture
def guard(tmp_path: Path, hermes: Terminal) -> Path:
    """A program that blocks, set for two tools."""
    program = tmp_path / "guard.sh"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho Not today. >&2\nexit 2\n")
    program.chmod(0o755)
    hermes.write(
        "hooks:\n  pre_tool_call:\n"
        f'    - {{matcher: "terminal|write_file", command: "{program} -x", timeout: 5}}\n'
    )
    return program


def test_without_any_the_list_says_so(hermes: Terminal) -> None:
    assert hermes("hooks", "list").out == "No hooks are configured; see docs/hooks.md.\n"
    assert hermes("hooks", "list", "--json").json == []
    assert hermes("hooks", "doctor").code == 0


def test_a_hook_is_allowed_tried_changed_and_revoked(hermes: Terminal, guard: Path) -> None:
    def state() -> str:
        return str(hermes("hooks", "list", "--json").json[0]["state"])

    assert state() == "not allowed"
    refused = hermes("hooks", "test", "pre_tool_call")
    assert (refused.code, refused.err.count("put --accept-hooks before")) == (2, 1)
    tried = hermes("--accept-hooks", "hooks", "test", "pre_tool_call", "--json").json
    assert [(each["code"], each["answer"]) for each in tried] == [
        (2, '{"action":"block","message":"Not today."}')
    ]
    assert state() == "allowed"
    assert hermes("hooks", "doctor").code == 0
    shown = hermes("hooks", "test", "pre_tool_call", "--for-tool", "terminal").out
    assert 'result: {"action":"block","message":"Not today."}' in shown
    guard.write_text(guard.read_text() + "# more\n")
    assert state() == "changed"
    sick = hermes("hooks", "doctor")
    assert (sick.code, "has changed since it was allowed" in sick.out) == (1, True)
    assert hermes("hooks", "revoke", f"{guard} -x").out == "Revoked for 1 hook.\n"
    assert state() == "not allowed"
    again = hermes("hooks", "revoke", f"{guard} -x")
    assert (again.code, "No consent exists for" in again.err) == (1, True)


def test_what_cannot_be_tried_is_refused_with_advice(hermes: Terminal, guard: Path) -> None:
    unknown = hermes("hooks", "test", "pre_tool_cal")
    assert (unknown.code, "pre_tool_call" in unknown.err) == (1, True)
    none = hermes("hooks", "test", "pre_tool_call", "--for-tool", "read_file")
    assert "No usable program is configured for pre_tool_call for read_file" in none.err


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("pre_tool_cal: [{command: 'true'}]", "There is no hook 'pre_tool_cal'"),
        ("pre_tool_call: [{command: 'true', matcher: '('}]", "is not a valid pattern"),
        ('pre_tool_call: [{command: "echo \'x"}]', "is not valid"),
        ("pre_tool_call: [{command: ''}]", "empty command"),
    ],
)
def test_the_doctor_says_what_is_wrong(hermes: Terminal, entry: str, words: str) -> None:
    hermes.write(f"hooks: {{{entry}}}\n")
    sick = hermes("--accept-hooks", "hooks", "doctor")
    assert sick.code == 1
    assert words in sick.out
