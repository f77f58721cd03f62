"""Programs with subcommands, told by a table: which only read, which work here, which go out."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import Value
from hermes.policy.call import Call, Check
from hermes.policy.options import Options
from hermes.policy.patterns import regex
from hermes.policy.programs.vocabulary import SENDS, only_looks
from hermes.policy.shell.state import UNKNOWN, Stream

Extra = Callable[[Call, str, Options], None]


class Verbs(Value):
    """`reads`, `works` and the words in `asks` are subcommands; `a:b` is one below another.
    `taking` are options with a value that may stand before the subcommand. What is in no list
    is asked about as `otherwise`; with `otherwise` empty it is ordinary work."""

    reads: str = ""
    works: str = ""
    asks: dict[str, str] = {}
    taking: str = ""
    otherwise: str = "unknown_program"
    bare: str = "read"


def verbs(table: Verbs, extra: Extra | None = None) -> Check:
    reads, works = frozenset(table.reads.split()), frozenset(table.works.split())
    asks = {word: category for category, words in table.asks.items() for word in words.split()}

    def check(call: Call) -> Stream | None:
        options = call.options(table.taking)
        words = options.operands
        named = [":".join(words[:count]) for count in (3, 2, 1) if len(words) >= count]
        if not words and options.has("--help", "--version", "-h", "-V", "-v"):
            return None
        verb = next((each for each in named if each in reads | works | asks.keys()), "")
        if extra is not None:
            extra(call, ":".join(words[:3]), options)
        told = verb.replace(":", " ") or (words[0] if words else "")
        if any(SENDS.match(word) for word in call.arguments):
            call.ask("remote_state", f"`{call.name} {told}` sends what it makes to others.")
        if not words:
            _bare(call, table.bare)
        elif verb in asks:
            call.ask(asks[verb], f"`{call.name} {told}`: {REASONS.get(asks[verb], 'asked')}.")
        elif verb in works:
            call.work(reason=f"`{call.name} {told}` works in the project.")
        elif table.otherwise == "remote_state" and _asks_secret(words[1:]):
            call.ask("credentials", f"`{call.name} {told}` shows a secret.")
        elif verb not in reads and not (options.has("--help") or words[0] == "help"):
            if table.otherwise and only_looks(words):
                call.work("network", f"`{call.name} {told}` only looks.")
            else:
                _unlisted(call, table.otherwise, told)
        return None

    return check


SECRET_WORD = regex(
    r"(?i)(^|[-_/.:])(passw(or)?d|secret|credential|private[-_]?key|api[-_]?key|access[-_]?key)s?"
    r"($|[-_/.:])|[-_/](token|key)s?$"
)
REASONS = {
    "remote_state": "it changes something that others share",
    "container": "it ends containers or removes their data",
    "package_install": "it installs or removes packages",
    "credentials": "it shows or changes keys and passwords",
    "services": "it changes what runs on this machine",
    "system_config": "it changes the configuration of the system",
    "process_kill": "it ends processes",
    "network_out": "it sends data out",
    "network_listen": "it opens a way in for others",
    "remote_code": "it runs code from elsewhere",
    "database": "it changes or deletes data",
    "delete": "it deletes",
    "disk": "it changes disks",
    "power": "it turns the machine off",
    "privilege": "it changes who has which rights",
    "persistence": "it leaves something behind that runs later",
    "unknown_program": "it is not known what it does",
    "unclear": "it is not known what it does",
}


def _asks_secret(words: list[str]) -> bool:
    return words[:1] != ["search"] and any(SECRET_WORD.search(word) for word in words[:4])


def _bare(call: Call, bare: str) -> None:
    if bare == "work":
        call.work(reason=f"`{call.name}` works in the project.")
    elif bare != "read":
        call.ask(bare, f"`{call.name}`: {REASONS.get(bare, 'asked')}.")


def _unlisted(call: Call, otherwise: str, told: str) -> None:
    if UNKNOWN in told:
        call.ask("unclear", f"What `{call.name}` is told to do is only known when it runs.")
    elif otherwise:
        call.ask(otherwise, f"`{call.name} {told}`: {REASONS.get(otherwise, 'asked')}.")
    else:
        call.work(reason=f"`{call.name} {told}` works in the project.")
