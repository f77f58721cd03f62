"""Slash commands are found by what people type."""

from __future__ import annotations

import pytest

from hermes.commands.catalogue import COMMANDS
from hermes.commands.registry import (
    CommandContext,
    CommandRegistry,
    Outcome,
    ShowText,
    SlashCommand,
    Suggestion,
)
from hermes.core.errors import UsageError
from tests.commands.conftest import Talk

REGISTRY = CommandRegistry(COMMANDS, "cli", note="Keys.")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("help", "help"),
        ("HELP", "help"),
        ("reset", "new"),
        ("exit", "quit"),
        ("tit", "title"),
        ("ti", None),
        ("u", None),
        ("re", None),
        ("", None),
        ("nosuch", None),
    ],
)
def test_names_aliases_and_unique_beginnings_are_found(typed: str, name: str | None) -> None:
    found = REGISTRY.find(typed)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("text", "meant"),
    [("/help", True), ("/undo 2", True), ("/etc/hosts?", False), ("/", False), ("hi /help", False)],
)
def test_a_path_is_no_command(text: str, meant: bool) -> None:
    assert REGISTRY.is_command(text) is meant


async def test_an_unknown_command_is_told_the_nearest(talk: Talk) -> None:
    near = await REGISTRY.run("/usge", talk)
    assert near == ShowText(text="There is no command /usge. Did you mean /usage?")
    several = await REGISTRY.run("/res", talk)
    assert several == ShowText(text="There is no command /res. Did you mean /reset or /resume?")
    none = await REGISTRY.run("/zzzz", talk)
    assert none == ShowText(text="There is no command /zzzz. /help lists them.")


async def test_a_command_that_cannot_be_done_says_why(talk: Talk) -> None:
    async def refuse(here: CommandContext, argument: str) -> Outcome:
        raise UsageError("Not now.")

    registry = CommandRegistry((SlashCommand("try", "Try.", refuse),), "cli")
    assert await registry.run("/try", talk) == ShowText(text="Not now.")


async def test_names_are_completed_with_their_words() -> None:
    found = await REGISTRY.complete("/tit", None)
    assert found == (
        Suggestion(text="title", description="Show or set the title of this session.", replaces=3),
    )
    assert await REGISTRY.complete("hello", None) == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/fast ", ["on", "off"]),
        ("/snapshot ", ["create", "restore", "prune"]),
        ("/tools d", ["disable"]),
        ("/compress ", ["here"]),
        ("/queue ", []),
        ("/help ", []),
    ],
)
async def test_the_words_of_a_usage_complete_its_first_argument(
    talk: Talk, line: str, words: list[str]
) -> None:
    assert [found.text for found in await REGISTRY.complete(line, talk)] == words


async def test_wrong_arguments_show_the_usage_and_the_meaning(talk: Talk) -> None:
    shown = await REGISTRY.run("/timestamps maybe", talk)
    assert shown == ShowText(text="Use /timestamps [on|off]\nShow or hide timestamps.")


def test_a_surface_lists_only_its_own_commands() -> None:
    assert "/quit" in REGISTRY.help()
    assert "/quit" not in CommandRegistry(COMMANDS, "editor").help()


def test_help_is_grouped() -> None:
    lines = REGISTRY.help().split("\n")
    assert lines[:2] == [
        "Session",
        "  /help [WORD]                          "
        "List all commands, those that mention a word, or one.",
    ]
    at = lines.index("Memory and skills")
    assert lines[at - 1] == "" and lines[at + 1].startswith("  /memory ")
    assert all(command.group for command in REGISTRY.commands)


def test_help_can_be_filtered_by_a_word() -> None:
    shown = REGISTRY.help("answer").split("\n")
    assert [line for line in shown if line and not line.startswith(" ")] == [
        "Session",
        "Model and display",
    ]
    assert [line.split()[0] for line in shown if line.startswith(" ")] == ["/copy", "/markdown"]
    assert REGISTRY.help("timestamps") == "/timestamps [on|off]\nShow or hide timestamps."
    assert REGISTRY.help("/exit").startswith("/quit ")
    assert REGISTRY.help("clipboard").startswith("/paste\n")
    assert REGISTRY.help("usge") == "No command mentions “usge”. Did you mean /usage?"


def test_the_help_of_a_surface_ends_with_its_note() -> None:
    assert REGISTRY.help().endswith("\nKeys.")
