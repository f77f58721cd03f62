"""A fault of the policy is a denial, and no command makes it fail."""

from __future__ import annotations

import logging
import random
import time

import pytest

from hermes.core.effects import Decision, Deny
from hermes.policy.programs.records import known_names
from hermes.policy.rules import FAULT
from tests.policy.corpora import load
from tests.policy.decisions import command, decide, rules

SIGNS = [
    *"{}()[]<>|&;$`'\"\\!*?~#=-+:,.@%^/ \n\t\0",
    "$(",
    "${",
    "<<E\n",
    "|&",
    "--",
    "-c",
    "\ufffc",
]
MOST_SECONDS = 1.0


def mutate(script: str, chance: random.Random, words: list[str]) -> str:
    """Change a command in a few places."""
    for _ in range(chance.randint(1, 4)):
        parts = script.split(" ")
        at = chance.randrange(len(script) + 1)
        match chance.randrange(6):
            case 0:
                script = script[:at] + script[at + 1 :]
            case 1:
                script = script[:at] + chance.choice(SIGNS) + script[at:]
            case 2:
                script = " ".join(chance.sample(parts, len(parts)))
            case 3:
                script = " ".join([chance.choice(words), *parts[1:]])
            case 4:
                script = script[:at]
            case _:
                script = f"{script}{chance.choice(SIGNS)}{chance.choice(words)}"
    return script


def fuzz(seed: int, count: int) -> list[str]:
    """Return the mutated commands at which the policy fails or takes too long."""
    chance, policy = random.Random(seed), rules()
    names = ("dangerous", "benign", "dangerous_held", "benign_held", "dangerous_blind")
    scripts = [sample.script for name in names for sample in load(name)]
    words = [*sorted(known_names()), *{word: None for each in scripts for word in each.split()}]
    failed = []
    for _ in range(count):
        script = mutate(chance.choice(scripts), chance, words)
        begun = time.process_time()
        decision = decide(command(script), policy)
        if decision.reason == FAULT or time.process_time() - begun > MOST_SECONDS:
            failed.append(script)
    return failed


def test_mutated_commands_are_judged() -> None:
    assert fuzz(seed=1, count=1_500) == []


@pytest.mark.slow
def test_many_mutated_commands_are_judged() -> None:
    assert fuzz(seed=2, count=20_000) == []


def test_a_fault_of_the_policy_denies_the_effect_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> Decision:
        raise IndexError("list index out of range")

    monkeypatch.setattr("hermes.policy.walk.record_of", fail)
    with caplog.at_level(logging.ERROR):
        decision = decide("ls")
    assert isinstance(decision, Deny)
    assert decision.reason == FAULT
    assert "failed to judge" in caplog.text
