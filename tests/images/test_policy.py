"""What may be drawn without a question, for whom, and beside what."""

from __future__ import annotations

from pathlib import Path

from hermes.core.effects import Allow, Ask, CallServer, Deny, Draw
from hermes.policy.owner_rules import Rule
from hermes.policy.rules import PolicySettings, SessionPolicy

DRAWS = Draw(provider="openai", host="api.openai.com", prompt="the plan of the vault")
HERE = frozenset({"user", "workspace"})


def rules(root: Path, *standing: Rule) -> SessionPolicy:
    return SessionPolicy(
        PolicySettings(rules=standing),
        root=str(root),
        home=str(root / "home"),
        state=str(root / "state"),
        keep=lambda _: None,
    )


def test_the_owner_draws_without_a_question_and_several_at_once(tmp_path: Path) -> None:
    assert rules(tmp_path).decide(DRAWS, "owner", HERE) == Allow(harmless=True)
    other = CallServer(server="mailer", tool="send", arguments="{}")
    assert rules(tmp_path).decide(other, "owner", HERE) == Allow()


def test_with_strangers_text_in_view_the_owner_is_asked(tmp_path: Path) -> None:
    decision = rules(tmp_path).decide(DRAWS, "owner", HERE | {"web:evil.example"})
    assert isinstance(decision, Ask)
    assert "openai (api.openai.com)" in decision.reason


def test_guests_draw_only_where_a_rule_lets_them(tmp_path: Path) -> None:
    assert isinstance(rules(tmp_path).decide(DRAWS, "guest", HERE), Deny)


def test_a_rule_of_the_owner_can_forbid_a_provider(tmp_path: Path) -> None:
    by_kind = Rule(decision="deny", effect="draw", match="openai/*")
    # How such a rule was written while drawing was a call of a server like others.
    as_server = Rule(decision="deny", effect="server", match="image_gen/openai/*")
    for rule in (by_kind, as_server):
        assert isinstance(rules(tmp_path, rule).decide(DRAWS, "owner", HERE), Deny)
    other = Rule(decision="deny", effect="server", match="mailer/*")
    assert isinstance(rules(tmp_path, other).decide(DRAWS, "owner", HERE), Allow)
