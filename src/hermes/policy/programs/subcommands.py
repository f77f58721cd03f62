"""Checks programs by their subcommands and read-only flags."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.policy.call import Call
from hermes.policy.findings import READS_ONLY
from hermes.policy.path_effects import DISK
from hermes.policy.patterns import load_regex, regex, vocabulary, word_set
from hermes.policy.programs.records import Program
from hermes.policy.shell.state import UNKNOWN, Stream

PLURAL = regex(r"[a-z-]{3,}[^sui]s")
SECRET = load_regex("secret_word")
SENDS = load_regex("sending_option")
TURNED = load_regex("changing_option")


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
    """Return the first argument that names a destroying verb, such as `schema:drop`."""
    for word in words:
        parts = re.split(r"[:_-]", word.lower())
        if not set(word) & set("./= ") and not word_set("destroying_verbs").isdisjoint(parts):
            return word
    return ""


ASKING = load_regex("reading_option")
# Stores of secrets: only names and states may be listed.
NAMES_ONLY = frozenset(("status", "version", "help", "list", "ls", "--list", "-l"))
TELLS_SECRETS = regex(r"(?i)secret|private|password|passphrase|export|session-key|decrypt")


def only_reads(call: Call, *, ordered: bool = False) -> bool:
    """Whether a program that changes a machine, cluster or database is only asked to read.
    `ordered` means that its first words are subcommands."""
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
    """Check a call by the lists of subcommands in the record; `a:b` is the subcommand `b` of `a`.
    Those in `reads` only read, those in `works` are ordinary work, and those in `asks` need
    approval, by category. An unlisted one gets the category `otherwise` (ordinary work if that is
    empty), unless its words show that it only reads or are known only at run time. `bare` applies
    to a call without a subcommand."""
    record = call.record
    options = call.options(record.values)
    words = options.operands
    if not words and options.has("--help", "--version", "-h", "-V", "-v"):
        return None
    verb, kind = _find_subcommand(record, words)
    if any(f"{verb}:{word}" in record.reads.split() for word in call.arguments if word[:2] == "--"):
        kind = "reads"
    what = " ".join((call.name, *(verb.split(":") if verb else words[:1])))
    if any(SENDS.match(word) for word in call.arguments):
        call.ask("remote_state", f"`{what}` publishes its output.")
    if not words:
        kind = {"work": "works", "read": "reads"}.get(record.bare, record.bare)
    elif kind in ("", "reads") and _names_secret(record, words):
        call.ask("credentials", f"`{what}` shows a secret.")
        return None
    elif not kind:
        if options.has("--help") or words[0] == "help":
            return None
        if record.otherwise and only_looks(words):
            call.work("network", f"`{what}` only looks.")
            return None
        if UNKNOWN in what:
            call.ask("unclear", f"The commands of `{call.name}` are known only at run time.")
            return None
        kind = record.otherwise or "works"
    if kind == "works":
        call.work(reason=f"`{what}` works in the project.")
    elif kind != "reads":
        call.ask(kind, f"`{what}`: {vocabulary().categories[kind].does}.")
    return None


def _names_secret(record: Program, words: list[str]) -> bool:
    searches = words[1:2] == ["search"]
    shared = record.otherwise == "remote_state" and not searches
    return shared and any(SECRET_WORD.search(word) for word in words[1:5])


def _find_subcommand(record: Program, words: list[str]) -> tuple[str, str]:
    """Return the longest subcommand that the record lists, and where: reads, works or a
    category."""
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


SECRET_WORD = load_regex("secret_argument")


WIPES = regex(r"--zero-superblock|\b(eraseDisk|eraseVolume|zeroDisk|secureErase|labelclear)\b")


def check_asked(call: Call) -> None:
    """Ask as the record says, unless the call only reads."""
    record, text = call.record, " ".join(call.arguments)
    for word in call.arguments:
        if DISK.match(word) and ("wipes" in record.flags or WIPES.search(text)):
            call.never("disk", f"it overwrites the disk {word}")
    names = record.category == "credentials" and names_only(call)
    tells = record.category in word_set("telling_categories") and "wipes" not in record.flags
    if names or (tells and only_reads(call)):
        call.work(reason=READS_ONLY)
    else:
        call.ask(record.category, record.reason)
