"""A gated workspace says itself what it does: what it only inherits would pass the gate by."""

from __future__ import annotations

from hermes.core.delegating import GatedProcesses, GatedWorkspace
from hermes.core.ports import Processes, Workspace

# These tell where things are, or keep a tool's own bytes outside the project.
TELLING = {"root", "cwd", "is_remote", "shell", "resolve", "scratch"}
LOOKING = {"list", "poll", "log", "wait", "notices"}


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_nothing_that_reads_or_changes_a_project_passes_by_the_gate() -> None:
    assert public(Workspace) - public(GatedWorkspace) == TELLING


def test_only_what_changes_nothing_passes_by_the_gate_of_processes() -> None:
    assert public(Processes) - public(GatedProcesses) == LOOKING
