"""Judges programs by their subcommands and read-only flags."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.records import Program
from hermes.policy.shell.state import UNKNOWN, Stream
from hermes.policy.words import word_set

PLURAL = regex(r"[a-z-]{3,}[^sui]s")
SECRET = regex(
    r"(?i)\b(secrets?|tokens?|passwords?|passwd|credentials?|creds?|keys?|keychain|api-?keys?"
    r"|private-?keys?|kubeconfig|cookies?|variables?|vars|envs?|environments?)\b"
)
# Verbs that destroy data.
DESTROYS = frozenset("drop destroy wipe purge uninstall terminate nuke erase delete gc".split())
# Options that also send out what a tool makes.
SENDS = regex(
    r"^--?(?!(?:no|skip|dont|without|disable|allow|before|after|pre|post)-)(?:\w+-){0,2}?"
    r"(?:upload|publish|deploy|submit|notarize|push)"
    r"(?!-(?:dir|path|url|size|limit|timeout|folder|profile|port|target|rate|prefix|format|mode)\b)"
    r"(?:-[\w-]+)?(?:=(?!false|no|0)|$)"
)
# Options that rule out a read-only call.
TURNED = regex(
    r"^--?(exec|execute|command|cmd|eval|shell|run-cmd|upload|send|push|post|publish|deploy|delete"
    r"|remove|destroy|purge|wipe|force|kill|listen|bind|host|proxy|remote|server|password|token"
    r"|daemon|install|uninstall|reverse|connect|to-host|webhook|overwrite-all)(=|$)"
)


def only_looks(words: Sequence[str]) -> bool:
    """Whether unlisted subcommands of a known program only read: the first verb decides."""
    for word in words[:4]:
        if SECRET.search(word) or UNKNOWN in word:
            return False
    for word in words[:4]:
        # DescribeInstances is describe-instances.
        word = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word)
        whole = word.lower()
        first = re.split(r"[:_-]", whole)[0] if ":" not in whole else whole.rpartition(":")[2]
        if whole in word_set("reading_verbs") or (
            first in word_set("reading_verbs") and whole != first
        ):
            return True
        if (whole in word_set("listed_things") or PLURAL.fullmatch(whole)) and word == words[-1]:
            return "-" not in word
        if whole in word_set("changing_verbs") or first in word_set("changing_verbs"):
            return False
    return False


def find_destroying_verb(words: Sequence[str]) -> str:
    """The first argument that names a destroying verb, such as `schema:drop`."""
    for word in words:
        parts = re.split(r"[:_-]", word.lower())
        if not set(word) & set("./= ") and not DESTROYS.isdisjoint(parts):
            return word
    return ""


# Long options that only read, for any program.
ASKING = regex(
    r"^--?(list|status|show|verify|check|dry-run|dryrun|detail|print|query|examine|describe|info|state"
    r"|get-(active|default|zones|services)|validate|simulate|just-print|no-act)($|[-=])"
)
# Stores of secrets: only names and states may be listed.
NAMES_ONLY = frozenset(("status", "version", "help", "list", "ls", "--list", "-l"))
TELLS_SECRETS = regex(r"(?i)secret|private|password|passphrase|export|session-key|decrypt")


def only_reads(call: Call, *, ordered: bool = False) -> bool:
    """Whether a program that changes a machine, cluster or database is only asked to read.
    `ordered`: its first words are subcommands."""
    words = call.options().operands
    if any(UNKNOWN in word or TURNED.match(word) for word in call.arguments):
        return False
    letters = call.record.looks.split()
    if ordered or "orders_first" in call.record.flags:
        return only_looks(words) or _asks(call.arguments, letters)
    plain = call.arguments in (["status"], ["/all"]) or (
        call.name == "ipconfig" and not call.arguments
    )
    return plain or _asks(call.arguments, letters)


def names_only(call: Call) -> bool:
    """Whether only names of secrets, fingerprints or signatures are asked for."""
    words = call.options().operands
    if call.name == "keytool" and call.arguments[:1] in (["-printcert"], ["-printcrl"]):
        return True
    if "prints_secrets" in call.record.flags or TELLS_SECRETS.search(" ".join(call.arguments)):
        return False
    if words[:1] and words[0] not in NAMES_ONLY and words[1:2] != ["list"]:
        return _asks(call.arguments[:1], ())
    return bool(words) or _asks(call.arguments, call.record.looks.split())


def _asks(words: Sequence[str], letters: Sequence[str]) -> bool:
    options = [word for word in words if word.startswith("-")]
    single = {each[1] for each in letters if len(each) == 2 and each[0] == "-"}
    return any(
        ASKING.match(word)
        or word in letters
        or (word[1:2] != "-" and len(word) < 6 and not single.isdisjoint(word[1:]))
        for word in options
    )


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
