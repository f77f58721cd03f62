"""The same dangerous commands through every entry point of the program: none takes effect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.commands.catalogue import COMMANDS as SLASH
from hermes.surfaces.api.routes import ROUTES
from hermes.surfaces.cli.root import COMMANDS
from hermes.testing.server import ScriptedServer
from hermes.tools.catalogue import declarations
from tests.safety.entry_points import ENTRY_POINTS
from tests.safety.installation import SECONDS, Installation
from tests.web.site import Site

SURFACES = Path(__file__).parents[2] / "src/hermes/surfaces"


@pytest.mark.parametrize("name", ENTRY_POINTS)
async def test_no_entry_point_lets_a_dangerous_command_in(name: str, tmp_path: Path) -> None:
    async with Site() as net, ScriptedServer(strict=False) as server:
        installed = Installation(tmp_path, net, server)
        async with asyncio.timeout(SECONDS):
            await ENTRY_POINTS[name].play(installed)
        assert installed.unharmed()


# What opens no session of a model and runs nothing that a model has said, or goes on with what
# another entry_point let in.
QUIET = {
    "cli": """auth backup bundles checkpoints claw completion config cost curator doctor dump extras
        fallback honcho hooks import insights login logout logs memory moa model pairing plugins
        policy profile prompt-size replay send sessions setup skills status tools trace undo
        uninstall update version webhook""",
    "api": """/v1/runs/{id}/stop /v1/runs/{id}/answer /v1/runs/{id}/steer /api/jobs
        /api/jobs/{id}/pause /api/jobs/{id}/resume /api/jobs/{id}/run""",
    "slash": """help new resume title retry undo usage quit sessions branch clear history save
        status copy queue steer stop agents btw moa model reasoning fast permission yolo verbose
        busy statusbar markdown timestamps rollback compress personality reload-mcp memory plugins
        skills bundles reload-skills learn curator provider tools toolsets config reload profile
        commands version debug image paste prompt insights snapshot""",
    "surface": "python",
}


def test_every_listed_way_has_an_entry_point() -> None:
    """Whoever adds a tool, a surface, a command or a route says here how it is tried."""
    listed = {
        *(f"tool:{name}" for name in declarations()),
        *(f"cli:{name}" for name in COMMANDS),
        *(f"slash:{command.name}" for command in SLASH),
        *(f"api:{route.path}" for route in ROUTES if route.method == "POST"),
        *(f"surface:{each.parent.name}" for each in SURFACES.glob("*/__init__.py")),
    }
    quiet = {f"{kind}:{name}" for kind, names in QUIET.items() for name in names.split()}
    covered = {name for entry_point in ENTRY_POINTS.values() for name in entry_point.covers}
    assert quiet & covered == set(), "listed in QUIET and covered by an entry point; remove one"
    assert listed - quiet - covered == set(), (
        "not covered: add a hostile attempt to tests/safety/entry_points.py (for a tool a call in "
        "_hostile_calls, for a route a path in _API or _SESSIONS, for others a name in `covers`), "
        "or list it in QUIET if it opens no model session and runs nothing that a model wrote"
    )
    assert quiet - listed == set(), "listed in QUIET and gone; remove it there"
