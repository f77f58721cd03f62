"""`hermes policy`: a dialogue about effects, and what was decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hermes.surfaces.cli.commands.policy import command
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.surfaces.cli.program import Program, lines


def run(*arguments: str, text: str = "") -> str:
    result = CliRunner().invoke(command, list(arguments), input=text, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def ask(*questions: dict[str, Any]) -> list[dict[str, Any]]:
    text = "".join(json.dumps(each) + "\n" for each in questions)
    return [json.loads(line) for line in run("check", text=text).splitlines()]


def decisions(*questions: dict[str, Any]) -> list[str]:
    return [answer["decision"] for answer in ask(*questions)]


def test_each_line_gets_an_answer_and_nothing_is_run(program: Program) -> None:
    (program.work / "kept").mkdir()
    answers = ask(
        {"effect": "command", "value": "rm -rf kept", "cwd": "."},
        {"effect": "command", "value": "rm -rf ~/x"},
        {"effect": "command", "value": "rm -rf /"},
    )
    assert [(each["decision"], each["category"]) for each in answers] == [
        ("allow", ""),
        ("ask", "delete"),
        ("deny", "delete"),
    ]
    assert answers[2]["hardline"] is True
    assert (program.work / "kept").is_dir()


def test_paths_are_meant_from_the_given_folder(program: Program, tmp_path: Path) -> None:
    assert decisions(
        {"effect": "read", "value": "a.txt"},
        {"effect": "read", "value": ".env"},
        {"effect": "write", "value": "a.txt"},
        {"effect": "write", "value": "../a.txt"},
        {"effect": "write", "value": "~/.bashrc"},
        {"effect": "delete", "value": "a.txt", "cwd": str(tmp_path)},
    ) == ["allow", "ask", "allow", "ask", "ask", "allow"]


def test_a_line_that_cannot_be_used_is_refused_and_the_dialogue_goes_on(program: Program) -> None:
    text = 'nonsense\n{"effect":"fly"}\n\n{"value":"ls"}\n{"effect":"command","value":"ls"}\n'
    answers = [json.loads(line) for line in run("check", text=text).splitlines()]
    assert [each["decision"] for each in answers] == ["deny", "deny", "deny", "allow"]


def test_with_nobody_there_a_question_is_a_refusal(program: Program) -> None:
    question = {"effect": "command", "value": "git push"}
    assert decisions(question, {**question, "unattended": True}) == ["ask", "deny"]


def test_people_and_sources_count(program: Program) -> None:
    fetch = {"effect": "command", "value": "curl https://example.com"}
    assert decisions(
        fetch, {**fetch, "origins": ["user", "web"]}, {**fetch, "principal": "guest"}
    ) == ["allow", "ask", "deny"]


def test_an_explanation_names_every_command_and_why(program: Program) -> None:
    told = json.loads(run("explain", "--json", "ls | xargs -I{} sh -c 'rm -rf ~/x'"))
    assert told["decision"] == "ask"
    assert "rm -rf '~/x'" in told["commands"] or any("/x" in each for each in told["commands"])
    assert any(each["category"] == "delete" for each in told["findings"])
    words = run("explain", "git push")
    assert words.startswith("ask: ")
    assert "1. git push" in words


def test_the_rules_in_force_are_shown(program: Program) -> None:
    program.home.mkdir(exist_ok=True)
    (program.home / "policy.toml").write_text('[[rule]]\ndecision = "deny"\nmatch = "rm *"\n')
    assert decisions({"effect": "command", "value": "rm x"}) == ["deny"]
    told = json.loads(run("rules", "--json"))
    assert told["mode"] == "manual"
    assert [rule["match"] for rule in told["rules"]] == ["rm *"]
    assert len(told["categories"]) >= 15
    assert "rm *" in run("rules")


def test_what_was_decided_is_told_with_who_answered(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(calls("terminal", command="rm -rf /"), says("I may not."))
    session = lines(scripted("-z", "go", "--json"))[0]["session_id"]
    (line,) = json.loads(run("log", "--json"))
    assert (line["session_id"], line["tool"], line["subject"], line["decision"]) == (
        session,
        "terminal",
        "rm -rf /",
        "deny",
    )
    assert "rm -rf /" in run("log", session)


@pytest.mark.parametrize("arguments", [("log",), ("log", "--only", "deny")])
def test_a_fresh_home_has_no_decisions(program: Program, arguments: tuple[str, ...]) -> None:
    assert run(*arguments) == "There are no decisions yet.\n"
