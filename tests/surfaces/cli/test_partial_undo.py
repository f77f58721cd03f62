"""`hermes undo` that fails in part has a non-zero exit code, and a second one restores the rest."""

from __future__ import annotations

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.surfaces.cli.program import Program
from tests.undo.test_partial import files_limited_to

LARGE = "L" * 3_000_000


def test_a_partial_undo_is_a_failure_that_can_be_repeated(
    scripted: Program, model_server: ScriptedServer
) -> None:
    (scripted.work / "large.txt").write_text(LARGE)
    model_server.add(calls("terminal", command="rm large.txt"), says("Gone."))
    assert scripted("-z", "Remove it.").code == 0
    with files_limited_to(2_000_000):
        failed = scripted("undo")
    assert failed.code == 1
    assert "A part failed; undo again" in failed.out and "large.txt could not be" in failed.out
    assert scripted("undo").code == 0
    assert (scripted.work / "large.txt").read_text() == LARGE
