"""The owner's rules for effects, people and surfaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.effects import Allow, Ask, Deny, ReadPath, WritePath
from hermes.core.errors import ConfigError
from hermes.policy.owner_rules import Rule, load_rules
from hermes.policy.rules import PolicySettings
from tests.policy.decisions import ROOT, decide, rules

FILE = """
[[rule]]
decision = "allow"
match = "docker compose *"

[[rule]]
decision = "deny"
effect = "write"
match = "*/secrets/*"
who = ["member", "owner"]
where = ["gateway"]
reason = "Secrets are made by hand."
"""


def test_rules_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(FILE)
    assert load_rules(path) == (
        Rule(decision="allow", match="docker compose *"),
        Rule(
            decision="deny",
            effect="write",
            match="*/secrets/*",
            who=("member", "owner"),
            where=("gateway",),
            reason="Secrets are made by hand.",
        ),
    )


def test_a_home_without_the_file_has_no_rules(tmp_path: Path) -> None:
    assert load_rules(tmp_path / "policy.toml") == ()


@pytest.mark.parametrize(
    "text",
    [
        "[[rule]",
        '[[rule]]\ndecision = "maybe"\nmatch = "x"',
        '[[rule]]\ndecision = "deny"',
        '[[rule]]\ndecision = "deny"\nmatch = "x"\nwhoo = ["owner"]',
        '[[rules]]\ndecision = "deny"\nmatch = "x"',
    ],
)
def test_rules_that_cannot_be_understood_are_not_passed_over(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"policy\.toml"):
        load_rules(path)


def ruled(*given: Rule, surface: str = "cli") -> PolicySettings:
    return PolicySettings(rules=given, surface=surface)


def test_an_allowed_pattern_lifts_the_question_about_that_command_only() -> None:
    by = rules(ruled(Rule(decision="allow", match="git push *")))
    assert isinstance(decide("git push origin main", by), Allow)
    assert isinstance(decide("cd sub && git push origin main", by), Allow)
    assert isinstance(decide("git push origin main; npm publish", by), Ask)
    assert isinstance(decide("git push origin main && curl x | sh", by), Ask)
    assert isinstance(decide("sudo git push origin main", by), Ask)


def test_a_pattern_cannot_be_stretched_over_a_second_command() -> None:
    by = rules(ruled(Rule(decision="allow", match="npm *")))
    assert isinstance(decide("npm publish", by), Allow)
    assert isinstance(decide("npm publish; git push", by), Ask)
    assert isinstance(decide("npm publish `git push`", by), Ask)


def test_deny_wins_over_allow_and_sees_into_scripts() -> None:
    by = rules(
        ruled(
            Rule(decision="allow", match="*"),
            Rule(decision="deny", match="npm publish*", reason="Only from the pipeline."),
        )
    )
    assert decide("bash -c 'npm publish'", by) == Deny(
        reason="Only from the pipeline.", category="settings"
    )
    assert isinstance(decide("git push", by), Allow)


def test_what_flows_can_be_made_a_question() -> None:
    by = rules(ruled(Rule(decision="ask", match="terraform *")))
    assert isinstance(decide("terraform plan", by), Ask)
    assert isinstance(decide("ls", by), Allow)


def test_rules_may_be_for_some_surfaces_only() -> None:
    rule = Rule(decision="deny", match="*", effect="any", where=("gateway",))
    assert isinstance(decide("ls", rules(ruled(rule, surface="gateway"))), Deny)
    assert isinstance(decide("ls", rules(ruled(rule, surface="cli"))), Allow)


def test_a_rule_that_allows_is_for_the_owner_unless_it_names_others() -> None:
    everyone = rules(ruled(Rule(decision="allow", match="make *")))
    assert isinstance(decide("make test", everyone, "member"), Deny)
    named = rules(ruled(Rule(decision="allow", match="make *", who=("member",))))
    assert isinstance(decide("make test", named, "member"), Allow)
    assert isinstance(decide("make test; rm x", named, "member"), Deny)
    assert isinstance(decide("make test", named, "guest"), Deny)


def test_rules_are_for_one_kind_of_effect() -> None:
    by = rules(
        ruled(
            Rule(decision="allow", effect="write", match="/srv/shared/*"),
            Rule(decision="deny", effect="read", match=f"{ROOT}/private/*"),
        )
    )
    assert isinstance(decide(WritePath(path="/srv/shared/a"), by), Allow)
    assert isinstance(decide(WritePath(path="/srv/other/a"), by), Ask)
    assert isinstance(decide(ReadPath(path=f"{ROOT}/private/a"), by), Deny)
    assert isinstance(decide(WritePath(path="/etc/passwd"), by), Deny)
