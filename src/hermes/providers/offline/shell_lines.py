"""Tells a line that is meant for the shell from a sentence that begins with the same word."""

from __future__ import annotations

import re

# Programs that people type into an assistant as they would into a terminal, with the words that
# make a command of them. An empty set: a command only alone, or with flags, paths or pipes.
_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "git": frozenset(
        "status log diff branch show add commit push pull fetch checkout switch merge rebase stash "
        "tag remote init clone blame reset restore grep describe".split()
    ),
    "npm": frozenset("install test run start ci audit outdated ls".split()),
    "cargo": frozenset("build test run check fmt clippy bench doc".split()),
    "go": frozenset("build test run vet fmt mod".split()),
    "make": frozenset("all test tests build clean check install lint docs format".split()),
    "just": frozenset("check test build lint".split()),
    "docker": frozenset("ps images build run logs compose version info".split()),
    "pip": frozenset("list freeze show install check".split()),
    "uv": frozenset("sync run pip lock tool".split()),
    "systemctl": frozenset("status list-units".split()),
}
_PROGRAMS = frozenset(
    "ls pwd cat echo grep rg head tail wc find sort uniq cut tr sed awk du df free uptime whoami "
    "id hostname uname date env printenv which ps top kill stat file diff cmp touch mkdir rmdir "
    "rm cp mv ln chmod chown tar gzip zip unzip curl wget ssh scp python python3 pip pip3 pytest "
    "ruff mypy tox nox node npx npm yarn pnpm cargo rustc go make just cmake gcc docker podman "
    "java javac mvn gradle dotnet ruby perl php composer poetry hatch black isort flake8 eslint "
    "prettier tsc jest vitest bun deno brew apt ip ping dig ss rsync watch time timeout sleep true "
    "false test seq printf sqlite3 psql mysql ffmpeg terraform ansible helm aws gcloud nproc lscpu "
    "kubectl systemctl journalctl git gh uv jq xxd sha256sum md5sum tree bash sh hermes".split()
) | frozenset(_SUBCOMMANDS)
# Programs whose name is a word of everyday language: a path alone does not make a command of them.
_WORDS = frozenset(
    "make just go find sort cut file head tail which date kill top touch cat tree node free stat "
    "hermes echo".split()
)
_STRONG_SIGNS = re.compile(r"(?:^|\s)-{1,2}\w|[|<>;&$=*]")
_SHELL_SIGNS = re.compile(r"(?:^|\s)-{1,2}\w|[|<>;&$=~*]|/|\.\w|^\.\.?$|\s\.\.?(?:\s|$)")


def may_be_command(text: str) -> bool:
    """Whether words after "run" can be meant for a shell: prose is not. One word may be any
    program; several begin with a known one or have signs that only a shell needs."""
    words = text.split()
    if len(words) < 2:
        return bool(words)
    return words[0] in _PROGRAMS or "/" in words[0] or bool(_STRONG_SIGNS.search(text))


def shell_line(text: str) -> str | None:
    """The command when the text is one: after "$" or "!", or a known program used as one."""
    line = text.strip()
    if line[:1] in "$!" and line[1:].strip() and not line[1].isdigit():
        return line[1:].strip()
    words = line.split()
    if not words or "\n" in line or words[0] not in _PROGRAMS:
        return None
    if len(words) == 1 or words[1] in _SUBCOMMANDS.get(words[0], ()):
        return line
    rest = line[len(words[0]) :].rstrip("?!. ")
    signs = _STRONG_SIGNS if words[0] in _WORDS else _SHELL_SIGNS
    return line if signs.search(rest) and not text.rstrip().endswith("?") else None
