"""Judges programs by their subcommands: which only read, which work here, which go out."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.records import Program
from hermes.policy.programs.vocabulary import SENDS, only_looks
from hermes.policy.shell.state import UNKNOWN, Stream


def check_subcommands(call: Call) -> Stream | None:
    """Judges by the record: `reads`, `works` and the words in `asks` are subcommands; `a:b` is one
    below another. What is in no list is asked about as `otherwise`; with `otherwise` empty it is
    ordinary work. `bare` says what the program does without a subcommand."""
    record = call.record
    options = call.options(record.values)
    words = options.operands
    if not words and options.has("--help", "--version", "-h", "-V", "-v"):
        return None
    verb, kind = _listed(record, words)
    told = verb.replace(":", " ") or (words[0] if words else "")
    if any(SENDS.match(word) for word in call.arguments):
        call.ask("remote_state", f"`{call.name} {told}` sends what it makes to others.")
    if not words:
        _bare(call, record.bare)
    elif kind == "works":
        call.work(reason=f"`{call.name} {told}` works in the project.")
    elif kind not in ("", "reads"):
        call.ask(kind, f"`{call.name} {told}`: {REASONS.get(kind, 'asked')}.")
    elif record.otherwise == "remote_state" and _asks_secret(words[1:]):
        call.ask("credentials", f"`{call.name} {told}` shows a secret.")
    elif not kind and not (options.has("--help") or words[0] == "help"):
        if record.otherwise and only_looks(words):
            call.work("network", f"`{call.name} {told}` only looks.")
        else:
            _unlisted(call, record.otherwise, told)
    return None


def _listed(record: Program, words: list[str]) -> tuple[str, str]:
    """The longest subcommand that the record lists, and where: reads, works or a category."""
    for count in (3, 2, 1):
        if len(words) < count:
            continue
        verb = ":".join(words[:count])
        for category, listed in record.asks.items():
            if verb in listed.split():
                return verb, category
        for kind, names in (("works", record.works), ("reads", record.reads)):
            if verb in names.split():
                return verb, kind
    return "", ""


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
