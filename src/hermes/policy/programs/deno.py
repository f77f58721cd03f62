"""Deno: code in a word, a file or the input, and the packages that it brings in."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.programs.running import own_program
from hermes.policy.programs.script_code import check_code
from hermes.policy.programs.workers import OUTWARD
from hermes.policy.shell.state import UNKNOWN, Stream

TAKING = """-c --config --import-map --lock --ext --cwd -L --log-level --cert --location --seed
    --v8-flags --env-file --output -o --root -n --name"""
CODE = frozenset(("eval", "repl"))
NEW = frozenset("add install i uninstall remove upgrade".split())
SHARED = frozenset(("publish", "deploy", "jupyter"))
RUNS = frozenset(("run", "serve", "test", "bench", "compile", "check"))


def check_deno(call: Call) -> Stream | None:
    options = call.options(TAKING)
    verb, names = (options.operands[:1] or [""])[0], options.operands[1:]
    named = names[1:] if verb in CODE else names
    if any("://" in word or word.startswith(("npm:", "jsr:")) for word in named):
        call.ask("remote_code", "It runs code from elsewhere.")
    call.work(reason="It runs code of the project.")
    if verb in CODE:
        for code in names[:1] or options.values("--eval"):
            _code(call, code)
    elif verb in SHARED:
        call.ask("remote_state", f"`deno {verb}` hands something to others.")
    elif verb in NEW:
        if names or verb in ("upgrade", "uninstall") or options.has("-g", "--global"):
            call.ask("package_install", f"It runs `deno {verb}`.")
        call.work("network", "It installs what the lock file names.")
    elif verb == "task":
        if names and OUTWARD.match(names[0]):
            call.ask("remote_state", f"`{names[0]}` sounds as if it changes something elsewhere.")
    elif verb in RUNS or "." in verb:
        _file(call, names[:1] if verb in RUNS else [verb])
    return None


def _code(call: Call, code: str) -> None:
    if UNKNOWN in code:
        call.ask("obfuscated", "It runs code that is only known when it runs.")
    check_code(call, code, backticks=False)


def _file(call: Call, names: list[str]) -> None:
    for name in names:
        stream = call.stdin if name == "-" else call.state.files.get(call.path(name))
        if stream is not None and stream.origin == "network":
            call.ask("remote_code", "It runs what it fetches from elsewhere.")
        elif stream is not None:
            _code(call, stream.text)
        elif "://" not in name:
            own_program(call, name)
