"""A plan of twelve steps with effects that must not happen twice, and one script."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.plans.planner import RULES
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says

SETTINGS = "toolsets: [hermes-cli, planning, code_execution]\n"
SCRIPT = """
from hermes_tools import read_file, terminal
read_file("a.txt")
terminal("echo once >> script.log")
print("script done")
"""


def _append(name: str) -> JsonObject:
    return {"command": f"echo once >> {name}.log; echo {name}"}


def _step(step_id: str, tool_name: str, parameters: JsonObject, *after: str) -> JsonObject:
    found: JsonObject = {"step_id": step_id, "tool_name": tool_name, "parameters": parameters}
    return {**found, "depends_on": list(after)}


EACH: JsonObject = {"tool_name": "read_file", "parameters": {"path": "${item}.txt"}}
STEPS: list[JsonObject] = [
    _step("s1", "read_file", {"path": "a.txt"}),
    _step("s2", "read_file", {"path": "b.txt"}),
    _step("s3", "terminal", _append("s3")),
    _step("s4", "llm", {"prompt": "Join ${s1} and ${s2}"}),
    _step("s5", "terminal", _append("s5"), "s4"),
    _step("s6", "write_file", {"path": "s6.txt", "content": "${s4}\n"}),
    _step("s7", "execute_code", {"code": SCRIPT}, "s3"),
    _step("s8", "map", {"over": ["a", "b"], "step": EACH}),
    _step("s9", "terminal", _append("s9"), "s7"),
    _step("s10", "terminal", _append("s10"), "s5"),
    _step("s11", "llm", {"prompt": "Sum up ${s8} and ${s9}"}),
    _step("s12", "write_file", {"path": "s12.txt", "content": "${s10} ${s11}\n"}),
]
EFFECTS = ("s3", "s5", "s9", "s10", "script")
# The steps that may not run twice, and all steps that need each of them.
NEEDED_BY = {
    "s3": {"s7", "s9", "s11", "s12"},
    "s5": {"s10", "s12"},
    "s7": {"s9", "s11", "s12"},
    "s9": {"s11", "s12"},
    "s10": {"s12"},
}


def model(request: Request) -> Step:
    """Runs the plan when it hears "Go", and completes steps that ask a model."""
    system = request.messages[0].text
    if system == RULES:
        raise AssertionError("No step fails, so nobody asks for another plan.")
    if system.startswith("You complete one step"):
        return says("a completion")
    if request.results:
        return says("All done.")
    if request.last_text == "Go":
        return calls("plan", action="run", goal="Twelve", steps=STEPS, confirm="skip")
    return says("Fine.")


def write_files(work: Path) -> None:
    work.joinpath("a.txt").write_text("alpha\n")
    work.joinpath("b.txt").write_text("beta\n")


def count_effects(work: Path) -> Counter[str]:
    """How often each effect happened."""
    logs = {name: work / f"{name}.log" for name in EFFECTS}
    return Counter(
        {name: path.read_text().count("once") for name, path in logs.items() if path.exists()}
    )
