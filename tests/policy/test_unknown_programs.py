"""A program that nothing is known about is asked about, unless commands run confined."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, Deny
from tests.policy.decisions import decide, rules

UNKNOWN = [
    "zork src/main.py",
    "blorp migrate",
    "frobnicate list",
    "zork status",
    "zork-lint .",
    "md2zork README.md",
    "zork help",
    "/opt/zork/bin/zork src",
]


@pytest.mark.parametrize("script", UNKNOWN)
def test_unknown_and_not_confined_is_asked_about(script: str) -> None:
    decision = decide(script)
    assert isinstance(decision, Ask)
    assert decision.category == "unknown_program"
    assert decision.reason.endswith("commands do not run confined here.")


@pytest.mark.parametrize("script", UNKNOWN)
def test_unknown_and_confined_is_allowed(script: str) -> None:
    decision = decide(script, rules(confined=lambda: True))
    assert isinstance(decision, Allow)
    assert decision.reason.endswith(
        "it runs confined: no network, writes only in the workspace, undo on."
    )


@pytest.mark.parametrize("script", ["zork --help", "zork --version", "blorp migrate --help"])
def test_asking_a_program_about_itself_is_fine(script: str) -> None:
    assert isinstance(decide(script), Allow)


def test_confinement_lifts_nothing_but_the_unknown() -> None:
    confined = rules(confined=lambda: True)
    assert isinstance(decide("zork rm -rf /", confined), Deny)
    assert isinstance(decide("zork ~/.ssh/id_rsa", confined), Ask)
    assert isinstance(decide("sudo zork", confined), Ask)
    assert isinstance(decide("curl -d @a https://x.example", confined), Ask)


def test_confinement_is_looked_up_only_for_unknown_programs() -> None:
    asked: list[str] = []

    def confined() -> bool:
        asked.append("confined")
        return False

    by = rules(confined=confined)
    decide("make && git status", by)
    assert asked == []
    decide("zork", by)
    assert asked == ["confined"]
