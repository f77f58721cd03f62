"""`hermes plugins` as a person types it."""

from __future__ import annotations

from typing import Any

from tests.surfaces.cli.program import Program


def rows(program: Program) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = program("plugins", "list", "--json").json
    return found


def test_a_declined_question_changes_nothing(program: Program) -> None:
    assert program("plugins", "new", "sample").code == 0
    before = rows(program)
    enabled = program.answer("n\n", "plugins", "enable", "sample", "--isolation", "in_process")
    assert (enabled.code, enabled.out) == (1, "")
    assert enabled.err.endswith("Nothing was changed.\n")
    removed = program.answer("n\n", "plugins", "remove", "sample")
    assert (removed.code, removed.out) == (1, "")
    assert removed.err.endswith("Nothing was removed.\n")
    assert rows(program) == before
    assert program.answer("y\n", "plugins", "remove", "sample").code == 0
    assert "sample" not in [row["key"] for row in rows(program)]
