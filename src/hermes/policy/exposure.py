"""Finds words of a command that name, show or look for credentials."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.shell.state import UNKNOWN, State
from hermes.policy.shell.tree import Text, Variable, Word

SIGNS = regex(r"[=,:@;]")
MOST_LISTED = 4_000
PATHS = regex(r"(?:^|(?<=[\s'\"=:]))(?:/|~/)[^\s'\"]+")
SECRET_NAME = regex(
    r"(?i)(^|_)(secret|token|passw(or)?d|passphrase|credentials?|private_?key|api_?key|access_?key"
    r"|auth_?key|signing_?key|encryption_?key)(_|$|s$)|_(key|pat|pwd|psk)$|_key_id$"
)
FROM_ENVIRONMENT = regex(
    r"(?:\bENV|\benviron(?:\.get)?|\bgetenv|\bprocess\.env|\bENVIRON|\bSys\.getenv|\$ENV|_ENV"
    r"|\bDeno\.env\.get)\W{0,4}(\w+)"
)
# A search of the environment for one of these is a search for credentials.
SECRET_PATTERN = regex(r"(?i)secret|token|pass(w|\b|_)|credential|api.?key|\bkey\b|_key|private")

HIDDEN_RUN = regex(r"\[[^\]]*(\$\(|`)")


# Options by which programs show what they otherwise keep covered.
SHOWING = regex(
    r"^--?(?:(?:show|reveal|display|print|dump|include|with|export|list|view|get|output)[-_])+"
    r"(?:(?:all|the|plain|raw)[-_])?"
    r"(?:secrets?|passwords?|pass|tokens?|credentials?|sensitive|private[-_]?keys?|secret[-_]?keys?|psk"
    r"|keys?[-_]material|api[-_]?keys?)(?:[-_](?:keys?|values?|only|subkeys))?(?:=(?!false|no|0)|$)"
    r"|^--(?:reveal|unmask(?:ed)?|no-(?:mask|masking|redact|redaction)|with-decryption"
    r"|(?:show|dump)-(?:sensitive|decrypted|unmasked)[\w-]*)(?:=(?!false|no|0)|$)"
)


def check_words(call: Call) -> None:
    """Checks the words of any program: they may hide a command, or name or show a credential."""
    check_subscripts(call)
    check_named_files(call)
    if "opens_no_argument" not in call.record.flags and any(
        word[:1] == "-" and SHOWING.match(word) for word in call.arguments
    ):
        call.ask("credentials", f"It makes `{call.name}` show secrets.")


def check_subscripts(call: Call) -> None:
    if "reads_subscripts" in call.record.flags and any(
        "[" in each and HIDDEN_RUN.search(each) for each in call.arguments
    ):
        call.ask("obfuscated", "It hides a command in the index of a variable.")


def check_named_files(call: Call) -> None:
    """Reads every path in the arguments, also inside an option or after a sign."""
    if "opens_no_argument" in call.record.flags:
        return
    for argument in call.arguments:
        if 3 < len(argument) < 400 and " " not in argument:
            for piece in SIGNS.split(argument):
                if piece[:1] in ("/", "~") or piece.rpartition("/")[2].startswith((".env", "id_")):
                    call.reads(piece)
        if argument.startswith("/dev/fd/") and "compares" not in call.record.flags:
            _listed_files(call, argument)


def _listed_files(call: Call, path: str) -> None:
    """A process substitution may be a list of the files that the program opens."""
    stream = call.state.files.get(path)
    if stream is not None and stream.known and len(stream.text) < MOST_LISTED:
        call.reads(*PATHS.findall(stream.text))


def check_secret_names(call: Call, code: str) -> None:
    """Code that takes a variable named like a secret from the environment."""
    for found in FROM_ENVIRONMENT.finditer(code):
        if SECRET_NAME.search(found[1]):
            call.ask("credentials", f"It uses the secret that ${found[1]} holds.")


def check_shown_variables(call: Call, words: Iterable[Word], state: State) -> None:
    """Variables named like secrets that the environment gives and the command prints."""
    if "shows_variables" not in call.record.flags:
        return
    names = [
        part.name
        for word in words
        for part in word
        if isinstance(part, Variable)
        and part.prefix != "#"
        and part.operator not in (":+", "+", ":?", "?")
        and part.name not in state.variables
    ]
    if call.name == "printenv":
        names += call.arguments
    for name in names:
        if SECRET_NAME.search(name):
            call.ask("credentials", f"It shows the secret that ${name} holds.")


def plain_words(words: Iterable[Word], state: State) -> frozenset[str]:
    """Words that hold nothing unknown but variables of the environment with harmless names."""
    found = set()
    for word in words:
        if (
            len(word) == 1
            and isinstance(word[0], Variable)
            and not SECRET_NAME.search(word[0].name)
        ):
            # An address as a whole: it carries nothing but itself, wherever it leads.
            found.add(UNKNOWN)
        parts = [_plain_text(part, state) for part in word]
        if None not in parts and any(isinstance(part, Variable) for part in word):
            found.add("".join(each for each in parts if each is not None))
    return frozenset(found)


def _plain_text(part: object, state: State) -> str | None:
    match part:
        case Text(text=text):
            return text
        case Variable(name=name, operator="", index="", prefix=""):
            if not name.isidentifier() or SECRET_NAME.search(name) or name in state.arrays:
                return None
            values = state.variables.get(name)
            if values is None:
                return UNKNOWN
            return values[0] if len(values) == 1 and UNKNOWN not in values[0] else None
    return None
