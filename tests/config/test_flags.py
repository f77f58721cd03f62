"""Options of the command line as settings."""

from __future__ import annotations

from hermes.config.home import Home
from hermes.config.layers import flag_values
from hermes.config.load import load


def test_options_that_were_given_override_settings(home: Home) -> None:
    options = {"model": "m", "provider": "p", "max_turns": 3, "yolo": True, "toolsets": "a, b"}
    found = load(home, flags=flag_values(options), env={}).settings
    assert (found.model.default, found.model.provider) == ("m", "p")
    assert (found.agent.max_turns, found.approvals.mode) == (3, "off")
    assert found.toolsets == ("a", "b")


def test_options_that_were_not_given_say_nothing() -> None:
    options = {"model": None, "yolo": False, "toolsets": None, "profile": "x", "resume": "y"}
    assert flag_values(options) == {}
