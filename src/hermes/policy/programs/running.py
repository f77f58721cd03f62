"""Programs that run scripts: from files, from input, and in shells."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import regex
from hermes.policy.places.places import is_inside
from hermes.policy.programs.records import is_known
from hermes.policy.programs.subcommands import find_destroying_verb
from hermes.policy.shell.state import ANYTHING, UNKNOWN, Stream

# Scripts of projects with known subcommands.
OWN_RUNNERS = frozenset(("gradlew", "mvnw", "artisan", "rails", "rake", "make"))


def run_stream(call: Call, stream: Stream) -> Stream:
    """Follow the commands of a stream."""
    if stream.origin == "network":
        call.ask("remote_code", "It runs code that it downloads.")
    elif stream.origin == "own":
        call.work(reason="It runs a script of the project.")
        return ANYTHING
    elif not stream.known:
        call.ask("obfuscated", "It runs text that is known only at run time.")
    elif stream.origin == "decoded":
        call.ask("obfuscated", "It runs decoded text.")
    if stream.text.replace(UNKNOWN, "").strip():
        return call.follower.text(stream.text.replace(UNKNOWN, " "), call.state.copy(), ANYTHING)
    return ANYTHING


def is_fetched(call: Call, path: str) -> bool:
    """Whether the script fetched the file from the network."""
    return any(
        stream.origin == "network" and is_inside(path, where)
        for where, stream in call.state.files.items()
    )


def own_program(call: Call, text: str) -> bool:
    """Whether a file is the project's own and may run; any other file needs approval."""
    path = call.path(text)
    if is_remote(text):
        call.ask("remote_code", f"It runs {text}, which was downloaded.")
    elif UNKNOWN in path:
        call.ask("unclear", "It runs a file whose name cannot be determined.")
    elif is_fetched(call, path):
        call.ask("remote_code", f"It runs {path}, which it has downloaded.")
    elif (
        not call.here(text)
        and not any(is_inside(path, each) for each in call.state.own)
        and not call.paths.is_shipped(path)
    ):
        # Neither of the project, nor built or copied by this script, nor of the distribution.
        call.unknown(f"It runs {path}, which is not part of the workspace")
    else:
        return True
    return False


def is_project_tool(call: Call, name: str) -> bool:
    """Whether the project's environment has a program of this name."""
    if not re.fullmatch(r"[\w.+-]+", name):
        return False
    folders = (".venv/bin", "venv/bin", "env/bin", "node_modules/.bin", "vendor/bin", "bin")
    paths = (f"{call.paths.root}/{folder}/{name}" for folder in folders)
    return any(call.paths.exists(path, unknown=False) for path in paths)


def run_file(call: Call, text: str, arguments: list[str], *, same_shell: bool = False) -> Stream:
    """Follow the commands of a file."""
    path = call.path(text)
    stream = call.stdin if path in ("/dev/stdin", "/dev/fd/0") else call.state.files.get(path)
    if stream is not None:
        call.state.arguments = tuple(arguments)
        if same_shell and stream.known:
            return call.runs_text(stream.text)
        return run_stream(call, stream)
    call.reads(text)
    if own_program(call, text):
        call.work(reason=f"It runs the project's own {text}.")
    if same_shell:
        call.state.forget()
    return ANYTHING


def check_path_program(call: Call) -> Stream | None:
    """Check a program given by its path."""
    path = call.path(call.name)
    stream = call.state.files.get(path)
    first_word, _, rest = call.name.partition(" ")
    if rest and is_known(first_word):
        # A whole command in place of a name is run by a shell.
        return call.runs_text(call.name)
    if stream is not None and stream.known and stream.text:
        first = stream.text.split("\n", 1)[0]
        interpreter = first.removeprefix("#!").split()[-1:] if first.startswith("#!") else ["sh"]
        program = interpreter[0].rpartition("/")[2] if interpreter else "sh"
        if program.endswith("sh"):
            return run_stream(call, stream)
        return call.runs([program, call.name, *call.arguments])
    if stream is not None and not stream.known and stream.origin not in ("own", "network"):
        call.ask(
            "obfuscated", f"It runs {call.name}, whose content is known only after it is written."
        )
    if own_program(call, call.name):
        call.work(reason=f"It runs the project's own {call.name}.")
        program = path.rpartition("/")[2]
        known = is_known(program)
        if known and ("/bin/" in path or "/.bin/" in path or program in OWN_RUNNERS):
            # Tools of a virtual environment or of node_modules are checked by name.
            return call.runs([program, *call.arguments])
        if program == "configure":
            prefixes = [each for each in call.arguments if each.startswith("--prefix=")]
            if prefixes:
                call.state.set("configure --prefix", (prefixes[-1].partition("=")[2],))
        call.reads(*(each for each in call.arguments if each[:1] in "/~"))
        ask_if_destroying(call, call.arguments)
    return None


def ask_if_destroying(call: Call, arguments: list[str]) -> None:
    """Ask about arguments of the project's programs that destroy data."""
    if order := find_destroying_verb([each for each in arguments if not each.startswith("-")][:2]):
        call.ask("database", f"`{order}` seems to delete something permanently.")


def check_title(call: Call, title: str, words: list[str]) -> None:
    """Ask about a program that shows another process name."""
    if words and title.rpartition("/")[2].lstrip("-") != words[0].rpartition("/")[2]:
        known = title.replace(UNKNOWN, "…")
        call.ask("obfuscated", f"It shows {words[0]} as `{known}` among the processes.")


def check_shell(call: Call) -> Stream | None:
    """Check sh, bash and other shells."""
    words = list(call.arguments)
    wants_text = from_input = False
    while words and words[0][:1] in ("-", "+") and words[0] not in ("-", "--"):
        word = words.pop(0)
        if word in ("--rcfile", "--init-file") and words:
            run_file(call, words.pop(0), [])
        elif word in ("-o", "+o", "-O", "+O") and words:
            words.pop(0)
        elif not word.startswith("--"):
            wants_text = wants_text or "c" in word
            from_input = from_input or "s" in word
            if word.endswith("o") and words:
                words.pop(0)
    if words and words[0] in ("-", "--"):
        words.pop(0)
    if wants_text:
        return _run_text(call, words)
    if words and not from_input:
        return run_file(call, words[0], words[1:])
    call.state = call.state.copy()
    call.state.arguments = tuple(words)
    if not call.stdin.text.strip():
        call.ask("unclear", "It starts an interactive shell.")
    return run_stream(call, call.stdin)


# Glob qualifiers of zsh.
QUALIFIERS = regex(r"(?<=[*?\]])\([^()\s'\"]*\)|(?<=[\w}])\([.@/^*=DNnoOLmUx0-9+-]+\)(?=\s|$)")


def _run_text(call: Call, words: list[str]) -> Stream | None:
    if not words:
        return None
    inner = call.state.copy()
    inner.arguments = tuple(words[2:])
    inner.variables["0"] = (words[1] if len(words) > 1 else "bash",)
    script = QUALIFIERS.sub("", words[0]) if call.name == "zsh" else words[0]
    return call.follower.text(script, inner, call.stdin)
