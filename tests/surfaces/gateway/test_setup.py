"""The setup wizard at a real terminal."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from functools import partial

import pytest

from tests.surfaces.cli.chat.pane import HERMES, TMUX, Pane
from tests.surfaces.gateway.machine import Machine

pytestmark = pytest.mark.skipif(TMUX is None, reason="needs tmux")


@pytest.fixture
def pane(machine: Machine) -> Iterator[Pane]:
    env = {name: value for name, value in machine.env.items() if not name.startswith("WIRE_")}
    opened = Pane(machine.home.parent, env)
    yield opened
    opened.close()


async def test_a_platform_is_set_up_and_checked(machine: Machine, pane: Pane) -> None:
    await asyncio.to_thread(_set_up, machine, pane)
    saved = (machine.home / ".env").read_text()
    assert f"WIRE_TOKEN={machine.wire.token}\n" in saved
    assert "WIRE_ALLOWED_USERS=7\n" in saved
    assert "WIRE_HOME_CHANNEL" not in saved
    assert stat.S_IMODE((machine.home / ".env").stat().st_mode) == 0o600
    assert machine.wire.logins == ["check", "check"]


def _set_up(machine: Machine, pane: Pane) -> None:
    pane.hermes("gateway setup", ready=False)
    pane.wait_for("1. Email", ". Wire", "not configured", "Platform (number or name)")
    pane.say("nosuch")
    pane.wait_for("There is no platform 'nosuch'")
    pane.say("wire")
    pane.wait_for("1. Start the server.", "2. Copy its token.", "Ask Wire.", "Token (WIRE_TOKEN)")
    pane.say("")
    pane.wait_for("This value is required")
    pane.say("a-wrong-token-0123")
    pane.wait_for("Port (WIRE_PORT)")
    pane.say(str(machine.wire.port))
    pane.wait_for("Allowed users (WIRE_ALLOWED_USERS)")
    pane.say("7")
    pane.wait_for("Home channel (WIRE_HOME_CHANNEL)")
    pane.say("")
    screen = pane.wait_for("The token is wrong", "Enter the values again?")
    assert "a-wrong-token-0123" not in screen
    pane.say("y")
    pane.wait_for("Token (WIRE_TOKEN) [a-wron...0123]")
    pane.say(machine.wire.token)
    for prompt in ("WIRE_PORT", "WIRE_ALLOWED_USERS", "WIRE_HOME_CHANNEL"):
        # A hidden prompt discards what was typed before.
        pane.wait(partial(_is_shown_twice, prompt))
        pane.say("")
    pane.wait_for("Connected as @wire.", "hermes gateway run", "hermes gateway install")
    assert machine.wire.token not in pane.everything()


def _is_shown_twice(prompt: str, screen: str) -> bool:
    return screen.count(prompt) == 2


async def test_ctrl_c_keeps_what_was_entered(machine: Machine, pane: Pane) -> None:
    def quit_early() -> None:
        pane.run(f"{HERMES} gateway setup wire; echo code $?")
        pane.wait_for("Token (WIRE_TOKEN)")
        pane.say("a-token-0123456789")
        pane.wait_for("Port (WIRE_PORT)")
        pane.keys("C-c")
        pane.wait_for("code 130")

    await asyncio.to_thread(quit_early)
    assert (machine.home / ".env").read_text() == "WIRE_TOKEN=a-token-0123456789\n"
