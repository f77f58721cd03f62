"""Programs that change a machine or a store when told to: how they are told only to look."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.vocabulary import TURNED, only_looks
from hermes.policy.shell.state import UNKNOWN

# Long options that ask, whatever the program is.
ASKING = regex(
    r"^--?(list|status|show|verify|check|dry-run|dryrun|detail|print|query|examine|describe|info|state"
    r"|get-(active|default|zones|services)|validate|simulate|just-print|no-act)($|[-=])"
)
# What they print may be the secrets themselves, so only names and states may be asked for.
NAMES_ONLY = frozenset(("status", "version", "help", "list", "ls", "--list", "-l"))
TELLS_SECRETS = regex(r"(?i)secret|private|password|passphrase|export|session-key|decrypt")


def only_asked(call: Call, *, ordered: bool = False) -> bool:
    """The words make it look at the machine, at a cluster or at a database, and at no more.
    `ordered` are programs whose first words are orders."""
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
    """A store of secrets is asked for their names, a key for its fingerprint or a signature."""
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
