"""An answer for a folder: one kind of effect, on files in one place, for one session."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, DeletePath, Effect, ReadPath, WritePath
from hermes.policy.rules import SessionPolicy
from tests.policy.decisions import HOME, ROOT, USER, decide, rules

FOLDER = "/srv/people/other"
WRITE = WritePath(path=f"{FOLDER}/a.txt")


def granted() -> SessionPolicy:
    policy = rules()
    policy.remember(WRITE, "folder")
    return policy


def scopes(effect: Effect) -> tuple[str, ...]:
    decision = decide(effect)
    assert isinstance(decision, Ask)
    return decision.scopes


def test_a_write_outside_the_workspace_can_be_allowed_for_its_folder() -> None:
    assert scopes(WRITE) == ("once", "session", "folder", "always")
    allowed = decide(WritePath(path=f"{FOLDER}/deep/b.txt"), granted())
    assert isinstance(allowed, Allow)
    assert (allowed.reason, allowed.lifted) == ("Allowed in this folder beforehand.", True)


@pytest.mark.parametrize(
    "effect",
    [
        WritePath(path="/srv/people/other-one/a.txt"),
        WritePath(path="/srv/people/a.txt"),
        WritePath(path=f"{FOLDER}/.env"),
        WritePath(path=f"{FOLDER}/.git/hooks/pre-commit"),
        DeletePath(path=f"{FOLDER}/a.txt"),
    ],
)
def test_everything_else_is_still_asked_about(effect: Effect) -> None:
    assert isinstance(decide(effect, granted()), Ask)


def test_the_grant_is_for_one_kind_of_effect() -> None:
    policy = rules()
    policy.remember(ReadPath(path="/home/other/x"), "folder")
    assert isinstance(decide(ReadPath(path="/home/other/y"), policy), Allow)
    assert isinstance(decide(WritePath(path="/home/other/y"), policy), Ask)


def test_a_command_in_the_folder_is_still_asked_about() -> None:
    assert isinstance(decide(f"echo x > {FOLDER}/a.txt", granted()), Ask)


@pytest.mark.parametrize("path", [f"{HOME}/notes.txt", "/home/notes.txt", "/notes.txt"])
def test_a_folder_that_holds_the_home_is_too_wide(path: str) -> None:
    assert "folder" not in scopes(WritePath(path=path))


def test_text_of_strangers_takes_the_choice_away_and_ends_the_grant() -> None:
    origins = USER | {"web:evil.example"}
    for policy in (rules(), granted()):
        decision = policy.decide(WritePath(path=f"{FOLDER}/b.txt"), "owner", origins)
        assert isinstance(decision, Ask)
        assert "folder" not in decision.scopes


def test_the_grant_is_not_stored() -> None:
    kept: list[str] = []
    policy = SessionPolicy(
        rules()._settings, root=ROOT, home=HOME, state=f"{HOME}/.hermes", keep=kept.append
    )
    policy.remember(WRITE, "folder")
    assert kept == []
    assert isinstance(decide(WRITE), Ask)
