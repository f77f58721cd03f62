"""The pages say what the program does: the generated ones word for word, the others as far as
their commands, links and names can be checked."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hermes.commands.catalogue import COMMANDS as SLASH_COMMANDS
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.surfaces.cli.root import root
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import toolsets_by_name

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted((ROOT / "docs").glob("*.md"))
# How the source asks for a variable of the environment.
READ_VARIABLE = re.compile(
    r'env(?:ironment\(\))?(?:\.get\(|\[)"([A-Z][A-Z_]+)"|"([A-Z_]+)" in env\b'
)


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_reference.py"), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )


def test_the_generated_pages_are_current() -> None:
    run = generate("--check")
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_every_command_and_option_has_its_place() -> None:
    page = (REFERENCE / "commands.md").read_text()
    for path, command in tree(root, "hermes"):
        _, found, rest = page.partition(f"## `{path}`\n")
        assert found, path
        section = rest.partition("\n## ")[0]
        for param in command.params:
            if isinstance(param, click.Option):
                assert all(name in section for name in param.opts), (path, param.opts)


def test_every_slash_command_has_its_place() -> None:
    page = (REFERENCE / "slash-commands.md").read_text()
    for command in SLASH_COMMANDS:
        for name in (command.name, *command.aliases):
            assert f"`/{name}" in page


def test_every_tool_and_toolset_has_its_place() -> None:
    page = (REFERENCE / "tools.md").read_text()
    assert all(f"## `{name}`\n" in page for name in declarations())
    assert all(f"| `{name}` |" in page for name in toolsets_by_name())


def test_every_variable_that_is_read_has_its_place() -> None:
    page = (REFERENCE / "environment.md").read_text()
    sources = (path.read_text() for path in (ROOT / "src" / "hermes").rglob("*.py"))
    found = {name for text in sources for pair in READ_VARIABLE.findall(text) for name in pair}
    keys = {
        name
        for vendor in shipped_catalogue().vendors.values()
        for name in (*vendor.keys, vendor.url_env)
    }
    assert {"HERMES_HOME", "NO_COLOR", "TMUX"} <= found
    assert not {name for name in found | keys if name and f"| `{name}` |" not in page}


def test_the_page_about_providers_names_every_vendor() -> None:
    page = (ROOT / "docs" / "providers.md").read_text()
    missing = [name for name in shipped_catalogue().vendors if f"`{name}`" not in page]
    assert not missing, f"add these vendors to docs/providers.md: {', '.join(missing)}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: path.name)
def test_the_commands_that_a_page_shows_are_understood(page: Path) -> None:
    for line in shown_commands(page.read_text()):
        understand(line)
    for line in named_commands(page.read_text()):
        understand(line, whole=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_first_page_leads_to_all_others() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    missing = {str(page) for page in pages if f"({page})" not in index}
    assert missing == {"index.md"}


def test_the_site_has_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(re.findall(r": (\S+\.md)$", nav, re.MULTILINE)) == sorted(pages)


def shown_commands(text: str) -> Iterator[str]:
    """The commands of ours in the shell blocks of a page."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            for part in re.split(r"[|;]", line.partition(" #")[0]):
                if found := re.search(r"(?:^|\s)(?:\./)?hermes (.*)", part):
                    yield found[1]


def named_commands(text: str) -> Iterator[str]:
    """The commands of ours that a page speaks of."""
    return (found[1] for found in re.finditer(r"`hermes ((?:[a-z-]+ )*-?-?[a-z-]+)`", text))


def understand(line: str, *, whole: bool = True) -> None:
    """Parse the words as a run would, without running anything. A file that a page speaks of need
    not exist here, and one that is not `whole` may lack arguments."""
    words = shlex.split(re.split(" [<>] ", line)[0], comments=True)
    command: click.Command = root
    name, parent = "hermes", None
    while True:
        try:
            parent = command.make_context(name, words, parent=parent)
        except click.exceptions.Exit:
            return
        except click.MissingParameter as error:
            assert not whole, f"hermes {line}: {error.format_message()}"
            return
        except click.BadParameter as error:
            assert "does not exist" in error.message, f"hermes {line}: {error.message}"
            return
        except click.UsageError as error:
            raise AssertionError(f"hermes {line}: {error.format_message()}") from error
        rest = [*parent._protected_args, *parent.args]
        if not isinstance(command, click.Group) or not rest:
            return
        found, below, words = command.resolve_command(parent, rest)
        assert found is not None
        assert below is not None
        name, command = found, below


def tree(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from tree(below, f"{path} {name}")
