"""Word-level rules: typos, shell commands, polite phrases."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

from hermes.providers.offline.language import AssistantLanguage, TextToken, phrase_ends

MAX_NEAR = 3


def slips_allowed(word: str) -> int:
    """The number of typos a word of this length may have before it could be another word."""
    if len(word) < 4 or not word.isalpha():
        return 0
    return 1 if len(word) < 8 else 2


def near_words(word: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The closest candidates, best first. The first letter must match, unless swapped with the
    second; in words of four letters another letter makes another word."""
    allowed = slips_allowed(word)
    if not allowed:
        return ()
    found: list[tuple[int, str]] = []
    for candidate in candidates:
        if abs(len(candidate) - len(word)) > allowed or not _same_start(word, candidate):
            continue
        slips = distance(word, candidate, allowed)
        if slips <= allowed and not (
            len(word) == 4 == len(candidate) and _has_other_letters(word, candidate)
        ):
            found.append((slips, candidate))
    found.sort()
    return tuple(candidate for slips, candidate in found if slips == found[0][0])[:MAX_NEAR]


def distance(one: str, two: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours; stops above `limit`."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(two, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and one[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def _same_start(word: str, candidate: str) -> bool:
    return word[0] == candidate[0] or (len(candidate) > 1 and word[:2] == candidate[1::-1])


def _has_other_letters(word: str, candidate: str) -> bool:
    return sorted(word) != sorted(candidate)


# Programs that people type into an assistant as into a terminal, with the words that make it a
# command. An empty set: a command only alone, or with flags, paths or pipes.
_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "git": frozenset(
        "status log diff branch show add commit push pull fetch checkout switch merge rebase stash "
        "tag remote init clone blame reset restore grep describe reflog shortlog config".split()
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
PROGRAMS = frozenset(
    "ls pwd cat echo grep rg head tail wc find sort uniq cut tr sed awk du df free uptime whoami "
    "id hostname uname date env printenv which ps top kill stat file diff cmp touch mkdir rmdir "
    "rm cp mv ln chmod chown tar gzip gunzip zip unzip curl wget ssh scp python python3 pip pip3 "
    "pytest ruff mypy tox nox node npx npm yarn pnpm cargo rustc rustup go gofmt make just cmake "
    "ninja gcc g++ clang gdb docker podman java javac mvn gradle dotnet ruby gem bundle perl php "
    "composer poetry hatch pipx conda black isort flake8 eslint prettier tsc jest vitest bun deno "
    "brew apt apt-get dnf yum pacman apk dpkg snap ip ifconfig ping traceroute dig nslookup ss "
    "netstat lsof rsync watch time timeout sleep true false test seq printf tee xargs sqlite3 psql "
    "mysql redis-cli ffmpeg convert pandoc terraform ansible helm aws gcloud az nproc lscpu lsblk "
    "lsusb lspci kubectl minikube systemctl journalctl service crontab git gh svn hg uv jq yq xxd "
    "od base64 sha1sum sha256sum sha512sum md5sum tree bash sh zsh fish tmux screen vim nvim nano "
    "emacs code less more man cal bc htop btop who w last groups users history alias type clear "
    "realpath basename dirname readlink mktemp nl tac rev fd bat fzf ollama hermes mkdocs uvicorn "
    "gunicorn flask lua julia swift strace valgrind openssl gpg nginx vagrant flutter dart".split()
) | frozenset(_SUBCOMMANDS)
# Programs whose name is an everyday word: a path alone does not make it a command.
EVERYDAY_PROGRAMS = frozenset(
    "make just go find sort cut file head tail which date kill top touch cat tree node free stat "
    "hermes echo time watch test true false sleep service screen code less more man who w last "
    "groups users history type clear convert bundle flask dart swift composer poetry hatch black "
    "snap id ip env ping sh fish gem helm az".split()
)
# Programs that people also talk about: they need a flag or a path.
_LANGUAGES = frozenset("python python3 java ruby perl php lua julia docker bash zsh vim".split())
# Everyday words that are a command when they stand alone.
_ALONE = frozenset("date top free tree id env who w history".split())
_STRONG_SIGNS = re.compile(r"(?:^|\s)-{1,2}\w|[|<>;&$=*]")
_SHELL_SIGNS = re.compile(r"(?:^|\s)-{1,2}\w|[|<>;&$=~*]|/|\.\w|^\.\.?$|\s\.\.?(?:\s|$)")
MAX_BARE_WORDS = 4


def may_be_command(text: str, may_name_program: Callable[[str], bool]) -> bool:
    """True if the words after "run" can be a command and not prose. The first word may be any
    program unless it has another meaning ("run away"); further words need a known program or shell
    syntax."""
    words = text.split()
    if not words:
        return False
    if words[0] in PROGRAMS or "/" in words[0]:
        return True
    if not may_name_program(words[0].casefold().strip(".?!")):
        return False
    return len(words) == 1 or bool(_STRONG_SIGNS.search(text))


def shell_line(text: str, sentence_words: Container[str]) -> str | None:
    """The command if the text is one: after "$" or "!", or a known program with shell syntax or
    without any word of a sentence."""
    line = text.strip()
    if line[:1] in "$!" and line[1:].strip() and not line[1].isdigit():
        return line[1:].strip()
    if line.partition(" ")[0].lower() in PROGRAMS:
        # Phones capitalise the first letter.
        line = line[0].lower() + line[1:]
    words = line.split()
    if not words or "\n" in line or words[0] not in PROGRAMS:
        return None
    if len(words) == 1:
        return line if words[0] not in EVERYDAY_PROGRAMS or words[0] in _ALONE else None
    subcommands = _SUBCOMMANDS.get(words[0], frozenset())
    # "Make all of them happy" continues differently from "git push origin main".
    if words[1] in subcommands and (
        words[0] not in EVERYDAY_PROGRAMS or subcommands.issuperset(words[1:])
    ):
        return line
    return line if _looks_typed(line, words, sentence_words) else None


def _looks_typed(line: str, words: list[str], sentence_words: Container[str]) -> bool:
    if line.endswith("?"):
        return False
    rest = line[len(words[0]) :].rstrip("!. ")
    signs = _STRONG_SIGNS if words[0] in EVERYDAY_PROGRAMS else _SHELL_SIGNS
    if signs.search(rest):
        return True
    if words[0] in EVERYDAY_PROGRAMS or words[0] in _SUBCOMMANDS or words[0] in _LANGUAGES:
        return False
    return len(words) <= MAX_BARE_WORDS and not any(word in sentence_words for word in words)


def strip_polite_phrases(
    language: AssistantLanguage, tokens: list[TextToken], start: int, end: int
) -> tuple[int, int]:
    """The start and end of the request without "could you please" and "thanks"."""
    start = _past_openers(language, tokens, start, end)
    return start, _before_closers(language, tokens, start, end)


def drop_asides(language: AssistantLanguage, tokens: list[TextToken]) -> list[TextToken]:
    """Removes phrases that may be anywhere: "make a folder for me called x"."""
    found: list[TextToken] = []
    at = 0
    while at < len(tokens):
        ends = [end for end, _, slips in phrase_ends(language.asides, tokens, at) if not slips]
        # A phrase that is the whole text stays.
        if not ends or ends[0] - at == len(tokens):
            found.append(tokens[at])
        at = ends[0] if ends else at + 1
    return found


def _past_openers(
    language: AssistantLanguage, tokens: list[TextToken], start: int, end: int
) -> int:
    """Skips opening phrases and the punctuation between them."""
    while start < end:
        ends = [to for to, _, _ in phrase_ends(language.openers, tokens, start) if to <= end]
        if ends:
            start = ends[0]
        elif tokens[start].kind == "mark":
            start += 1
        else:
            break
    return start


def _before_closers(
    language: AssistantLanguage, tokens: list[TextToken], start: int, end: int
) -> int:
    """Drops closing phrases. Punctuation stays unless a closing phrase follows it."""
    backwards = tokens[start:end][::-1]
    at = kept = 0
    while at < len(backwards):
        ends = [to for to, _, _ in phrase_ends(language.closers, backwards, at)]
        if ends:
            at = kept = ends[0]
        elif backwards[at].kind == "mark":
            at += 1
        else:
            break
    while kept and kept < len(backwards) and backwards[kept].kind == "mark":
        kept += 1
    return end - kept
