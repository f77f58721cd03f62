"""`hermes plan`: dry runs, exit codes, and a plan that is continued."""

from __future__ import annotations

import json
from typing import Any

from hermes.codec.json_schema import schema_errors
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.surfaces.cli.program import ROOT, Program

SCHEMA = json.loads((ROOT / "docs" / "reference" / "plan.schema.json").read_text())
READ = {"step_id": "a", "tool_name": "read_file", "parameters": {"path": "a.txt"}}
WRITE = {
    "step_id": "b",
    "tool_name": "write_file",
    "parameters": {"path": "b.txt", "content": "${a}"},
}


def _write_plan(program: Program, *steps: object) -> str:
    (program.work / "plan.json").write_text(json.dumps({"goal": "Copy", "steps": steps}))
    return "plan.json"


def _report(text: str) -> dict[str, Any]:
    """A report that fits the published schema."""
    found: dict[str, Any] = json.loads(text)
    assert schema_errors(found, SCHEMA) == ()
    return found


def test_a_dry_run_prints_a_plan_of_the_published_schema(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(says(json.dumps({"steps": [READ, WRITE]})), says("A draft."))
    result = scripted("plan", "Copy a.txt", "--dry-run", "--json")
    assert result.code == 0
    report = _report(result.out)
    assert report["status"] == "draft"
    assert report["plan"]["steps"][1]["depends_on"] == ["a"]
    assert not (scripted.work / "b.txt").exists()


def test_an_invalid_plan_has_exit_code_2_and_runs_nothing(scripted: Program) -> None:
    file = _write_plan(scripted, READ | {"depends_on": ["b"]}, WRITE)
    result = scripted("plan", "--file", file, "--yes")
    assert result.code == 2
    assert result.out == ""
    assert "The steps wait for each other: a -> b -> a." in result.err
    assert not (scripted.work / "b.txt").exists()


def test_a_plan_with_a_failed_step_is_continued(
    scripted: Program, model_server: ScriptedServer
) -> None:
    file = _write_plan(scripted, READ | {"on_failure": "skip"}, WRITE)
    model_server.add(says("a.txt is missing."))
    failed = scripted("plan", "--file", file, "--yes", "--json")
    assert failed.code == 1
    report = _report(failed.out)
    assert (report["status"], report["answer"]) == ("failed", "a.txt is missing.")
    (scripted.work / "a.txt").write_text("alpha")
    model_server.add(says("Copied."))
    done = scripted("plan", "--resume", report["plan_id"], "--yes", "--json")
    assert done.code == 0, done
    after = _report(done.out)
    assert after["session_id"] == report["session_id"]
    assert {name: each["status"] for name, each in after["steps"].items()} == {
        "a": "done",
        "b": "done",
    }
    assert "alpha" in (scripted.work / "b.txt").read_text()


def test_a_plan_that_does_not_exist_cannot_be_continued(scripted: Program) -> None:
    result = scripted("plan", "--resume", "plan_00000000")
    assert result.code != 0
    assert "plan_00000000" in result.err
