"""Finds words of a command that name, show or look for credentials."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.policy.call import Call
from hermes.policy.path_effects import KEY_FILE
from hermes.policy.patterns import load_regex, regex
from hermes.policy.shell.state import UNKNOWN, State
from hermes.policy.shell.tree import Text, Variable, Word

SIGNS = regex(r"[=,:@;]")
MOST_LISTED = 4_000
PATHS = regex(r"(?:^|(?<=[\s'\"=:]))(?:/|~/)[^\s'\"]+")
SECRET_NAME = load_regex("secret_variable")
FROM_ENVIRONMENT = load_regex("environment_lookup")
# A search of the environment for one of these is a search for credentials.
SECRET_PATTERN = regex(r"(?i)secret|token|pass(w|\b|_)|credential|api.?key|\bkey\b|_key|private")

HIDDEN_RUN = regex(r"\[[^\]]*(\$\(|`)")


SHOWING = load_regex("secret_showing_option")
KEY_PATTERN = load_regex("key_file_pattern")


def looks_like_key(name: str) -> bool:
    """Whether a search for this name is a search for keys."""
    return bool(KEY_FILE.search(name) or KEY_PATTERN.search(name))


def check_words(call: Call) -> None:
    """Check the words of any program: they may hide a command, or name or show a credential."""
    flags = call.record.flags
    if "reads_subscripts" in flags and any(
        "[" in each and HIDDEN_RUN.search(each) for each in call.arguments
    ):
        call.ask("obfuscated", "It hides a command in a variable index.")
    if "opens_no_argument" in flags:
        return
    for argument in call.arguments:
        # A path may stand inside an option or after a sign.
        if 3 < len(argument) < 400 and " " not in argument:
            for piece in SIGNS.split(argument):
                if piece[:1] in ("/", "~") or piece.rpartition("/")[2].startswith((".env", "id_")):
                    call.reads(piece)
        if argument.startswith("/dev/fd/") and "compares" not in flags:
            # A process substitution may be a list of the files that the program opens.
            stream = call.state.files.get(argument)
            if stream is not None and stream.known and len(stream.text) < MOST_LISTED:
                call.reads(*PATHS.findall(stream.text))
    if any(word[:1] == "-" and SHOWING.match(word) for word in call.arguments):
        call.ask("credentials", f"It makes `{call.name}` show secrets.")


def check_secret_names(call: Call, code: str) -> None:
    """Check code that takes a variable named like a secret from the environment."""
    for found in FROM_ENVIRONMENT.finditer(code):
        if SECRET_NAME.search(found[1]):
            call.ask("credentials", f"It uses the secret in ${found[1]}.")


def check_shown_variables(call: Call, words: Iterable[Word], state: State) -> None:
    """Check for environment variables that the command prints and that are named like secrets."""
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
            call.ask("credentials", f"It shows the secret in ${name}.")


def plain_words(words: Iterable[Word], state: State) -> frozenset[str]:
    """Return words that hold nothing unknown but variables of the environment with harmless
    names."""
    found = set()
    for word in words:
        variables = [part for part in word if isinstance(part, Variable)]
        if not variables:
            continue
        if len(word) == 1 and not SECRET_NAME.search(variables[0].name):
            # An address as a whole: it carries nothing but itself, wherever it leads.
            found.add(UNKNOWN)
        parts = [_plain_text(part, state) for part in word]
        if None not in parts:
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
