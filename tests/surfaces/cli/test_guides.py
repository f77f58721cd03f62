"""Every command that a guide shows can be typed: there is such a command, with such options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hermes.surfaces.cli.root import root

ROOT = Path(__file__).parents[3]
PAGES = sorted((*(ROOT / "docs").glob("*.md"), ROOT / "README.md"))
BLOCK = re.compile(r"```(?:sh|bash|console)\n(.*?)```", re.DOTALL)
ENDS = frozenset(("|", "||", "&&", ";", "&", "(", ")"))
REDIRECTIONS = frozenset((">", ">>", "<", "<<", "<<<", ">&"))


def commands_of(page: Path) -> Iterator[list[str]]:
    """The words behind each `hermes` in the examples of a page."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            yield from commands_in(line)


def commands_in(line: str) -> Iterator[list[str]]:
    reader = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words: list[str] = []
    for word in (*reader, ";"):
        if word not in ENDS:
            words.append(word)
            continue
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words and words[0] in ("hermes", "./hermes"):
            yield without_redirections(words[1:])
        words = []


def without_redirections(words: list[str]) -> list[str]:
    kept, rest = [], iter(words)
    for word in rest:
        if word in REDIRECTIONS:
            next(rest, None)
        else:
            kept.append(word)
    return kept


def understood(words: list[str]) -> None:
    """Read as the program would read it, and not carried out."""
    command: click.Command = root
    ctx = root.make_context("hermes", list(words))
    while isinstance(command, click.Group) and (rest := [*ctx._protected_args, *ctx.args]):
        name, found, rest = command.resolve_command(ctx, rest)
        assert found is not None
        command, ctx = found, found.make_context(name, rest, parent=ctx)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_guide_can_be_typed(page: Path, program: object) -> None:
    for words in commands_of(page):
        try:
            understood(words)
        except click.exceptions.Exit:
            pass
        except click.BadParameter as error:
            # Files of an example are not here.
            assert "does not exist" in error.format_message(), words


def test_a_line_of_shell_is_taken_apart() -> None:
    line = "$ A=1 hermes -z 'a | b' > file && ./hermes sessions list | grep hermes  # hermes nosuch"
    assert list(commands_in(line)) == [["-z", "a | b"], ["sessions", "list"]]
    with pytest.raises(click.UsageError):
        understood(["sessions", "list", "--nosuch"])
