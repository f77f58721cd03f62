"""Thousands of dangerous and everyday commands. What is `held` was never used to write a rule;
`rounds` were written before they were measured, and their misses became rules; `blind` came from
somebody who had not seen the rules."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.policy.patterns import vocabulary
from hermes.policy.rules import SessionPolicy
from tests.policy.corpora import Sample, load
from tests.policy.decisions import ROOT, decide, rules

DANGEROUS = ("dangerous", "dangerous_held", "dangerous_rounds", "dangerous_blind")
BENIGN = ("benign", "benign_held", "benign_rounds", "benign_blind")


@pytest.fixture
def all_of_them(request: pytest.FixtureRequest) -> bool:
    """Of the many that became rules a part is enough, unless all are wanted."""
    return bool(request.config.getoption("--slow"))


def decided(name: str, by: SessionPolicy, *, everything: bool) -> list[tuple[Sample, Decision]]:
    step = 3 if name.endswith("rounds") and not everything else 1
    return [(sample, decide(sample.script, by)) for sample in load(name)[::step]]


@pytest.mark.parametrize("name", DANGEROUS)
@pytest.mark.parametrize("root", [ROOT, "/tmp/somewhere/project", "/home/person/project"])
def test_the_end_of_the_machine_is_denied_for_ever(name: str, root: str) -> None:
    by = rules(root=root)
    ends = [sample.script for sample in load(name) if sample.category == "never"]
    missed = [
        script
        for script in ends
        if not (isinstance(decision := decide(script, by), Deny) and decision.hardline)
    ]
    assert missed == []


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_is_dangerous_is_asked_about_or_denied(name: str, all_of_them: bool) -> None:
    found = decided(name, rules(), everything=all_of_them)
    passed = [sample.script for sample, decision in found if isinstance(decision, Allow)]
    assert len(passed) <= len(found) * 0.01, passed
    for sample, decision in found:
        assert isinstance(decision, Allow) or is_told_well(decision), sample


def is_told_well(decision: Ask | Deny) -> bool:
    """Reasons are sentences, and categories are known."""
    begun = decision.reason[0].isupper() or decision.reason[0] in "`/~…"
    return decision.category in vocabulary().categories and begun and decision.reason.endswith(".")


@pytest.mark.parametrize("name", BENIGN)
def test_everyday_work_flows(name: str, all_of_them: bool) -> None:
    found = decided(name, rules(), everything=all_of_them)
    stopped = [sample.script for sample, decision in found if not isinstance(decision, Allow)]
    assert len(stopped) <= len(found) * 0.03, stopped


def test_the_corpora_are_wide() -> None:
    dangerous = [sample for name in DANGEROUS for sample in load(name)]
    benign = [sample for name in BENIGN for sample in load(name)]
    assert len({sample.script for sample in dangerous}) == len(dangerous) >= 5000
    assert len({sample.script for sample in benign}) == len(benign) >= 4500
    assert len({sample.category for sample in dangerous}) >= 15
