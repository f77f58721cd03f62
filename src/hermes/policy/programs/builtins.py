"""Builtins of the shell: folders, variables, eval, traps."""

from __future__ import annotations

import re
from itertools import pairwise

from hermes.policy.call import Call
from hermes.policy.findings import READS_ONLY, Finding, Level
from hermes.policy.patterns import load_regex, regex
from hermes.policy.programs.running import check_title, run_file, run_stream
from hermes.policy.redirections import check_variable
from hermes.policy.shell.state import ANYTHING, NOTHING, UNKNOWN, Stream
from hermes.policy.shell.words import ansi

ENVIRONMENTS = load_regex("shell_setup_file")
# Letters written as character codes, which hides them.
SPELLED = regex(r"\\(x[46-7][0-9a-fA-F]|0?1[0-7][0-7])")


def check_cd(call: Call) -> Stream:
    options = call.options()
    call.follower.add(Finding(level=Level.WORK, category="", reason=READS_ONLY))
    if call.name == "popd":
        call.state.cwd = UNKNOWN
        return NOTHING
    target = options.operands[0] if options.operands else "~"
    before = call.state.cwd
    if target == "-":
        call.state.cwd = call.state.variables.get("OLDPWD", (UNKNOWN,))[0]
    else:
        call.state.cwd = UNKNOWN if target == "" else call.path(target)
    call.state.set("OLDPWD", (before,))
    return NOTHING


def check_declare(call: Call) -> Stream:
    if any(word[:1] == "-" and "n" in word for word in call.arguments):
        call.ask("unclear", "It makes one variable an alias of another.")
    for word in call.arguments:
        name, equals, value = word.partition("=")
        if equals and name.rstrip("+").isidentifier():
            check_variable(call.follower, name, (value,), call.state)
            call.state.set(name.rstrip("+"), (value,))
    if all(word.startswith("-") for word in call.arguments):
        return Stream(origin="environment")
    call.work(reason="It sets variables of the shell.")
    return NOTHING


def check_set(call: Call) -> Stream:
    words = call.arguments
    if "--" in words:
        call.state.arguments = tuple(words[words.index("--") + 1 :])
    elif words and words[0][:1] not in ("-", "+"):
        call.state.arguments = tuple(words)
    if ("+o", "history") in pairwise(words) or "+ohistory" in words:
        call.ask("system_config", "It changes the shell history settings.")
    if words:
        call.work(reason="It sets options of the shell.")
        return NOTHING
    return Stream(origin="environment")


def check_shift(call: Call) -> Stream:
    count = int(call.arguments[0]) if call.arguments and call.arguments[0].isdigit() else 1
    if call.state.arguments is not None:
        call.state.arguments = call.state.arguments[count:]
    return NOTHING


def check_unset(call: Call) -> Stream:
    for name in call.options().operands:
        check_variable(call.follower, name, ("",), call.state)
        call.state.variables[name] = ("",)
        call.state.arrays.pop(name, None)
        call.state.functions.pop(name, None)
    call.work(reason="It sets variables of the shell.")
    return NOTHING


def check_read(call: Call) -> Stream:
    options = call.options("-p -t -n -N -d -u -i -a")
    lines = call.stdin.text.split("\n") if call.stdin.text != UNKNOWN else [UNKNOWN]
    values = tuple(line.strip() for line in lines if line.strip()) or ("",)
    names = options.operands or ["REPLY"]
    if len(names) == 1:
        call.state.set(names[0], values)
    else:
        signs = call.state.variables.get("IFS", (" \t\n",))[0]
        rows = [_row(value, signs, len(names)) for value in values]
        for place, name in enumerate(names):
            call.state.set(name, tuple(row[place] for row in rows))
    for name in options.values("-a"):
        call.state.arrays[name] = (UNKNOWN,)
    return NOTHING


def _row(line: str, signs: str, count: int) -> list[str]:
    """Return the fields of a line; the last field is the rest of the line."""
    if UNKNOWN in line or UNKNOWN in signs or not signs:
        return [UNKNOWN] * count
    fields = re.split(f"[{re.escape(signs)}]+", line, maxsplit=count - 1)
    return fields + [""] * (count - len(fields))


def check_mapfile(call: Call) -> Stream:
    names = call.options("-d -n -O -s -u -C -c").operands
    lines = tuple(line for line in call.stdin.text.split("\n") if line)
    call.state.arrays[names[0] if names else "MAPFILE"] = lines
    return NOTHING


def check_source(call: Call) -> Stream:
    words = [word for word in call.arguments if word != "--"]
    if not words:
        # Some shells read the input then.
        return run_stream(call, call.stdin) if call.stdin.origin == "network" else NOTHING
    if ENVIRONMENTS.search(words[0]) and call.path(words[0]) not in call.state.files:
        call.work(reason="It starts a login shell.")
        return NOTHING
    return run_file(call, words[0], words[1:], same_shell=True)


def check_trap(call: Call) -> Stream:
    words = [word for word in call.arguments if word != "--"]
    if len(words) > 1 and words[0] not in ("-", ""):
        call.work(reason="It sets an exit handler.")
        call.probes(words[0])
        call.follower.later(words[0], call.state)
    return NOTHING


def check_alias(call: Call) -> Stream:
    for word in call.options().operands:
        name, equals, value = word.partition("=")
        if equals:
            call.work(reason="It defines an alias.")
            call.follower.text(value, call.state.copy(), ANYTHING)
            call.state.aliases[name] = value
    return ANYTHING


def check_exec(call: Call) -> Stream | None:
    options = call.options("-a", permute=False)
    words = options.operands
    for title in options.values("-a"):
        check_title(call, title, words)
    return call.runs(words) if words else NOTHING


def check_let(call: Call) -> Stream:
    for word in call.arguments:
        name = word.partition("=")[0].rstrip("+-*/%&|^<>")
        if name.isidentifier():
            call.state.set(name, (UNKNOWN,))
    return NOTHING


def check_echo(call: Call) -> Stream:
    words = list(call.arguments)
    escapes = end = False
    while words and words[0].startswith("-") and words[0][1:] and set(words[0][1:]) <= set("neE"):
        escapes = escapes or "e" in words[0]
        end = end or "n" in words[0]
        words.pop(0)
    text = " ".join(words)
    origin = "decoded" if escapes and SPELLED.search(text) else ""
    return Stream(text=(ansi(text) if escapes else text) + ("" if end else "\n"), origin=origin)


def check_printf(call: Call) -> Stream:
    words = list(call.arguments)
    variable = ""
    if words[:1] == ["-v"] and len(words) > 1:
        variable = words[1]
        words = words[2:]
    if words[:1] == ["--"]:
        words.pop(0)
    text = format_printf(words[0], words[1:]) if words else ""
    if variable:
        call.state.set(variable, (text,))
        return NOTHING
    return Stream(text=text, origin="decoded" if words and SPELLED.search(words[0]) else "")


# A conversion of printf, up to its letter.
CONVERSION = regex(r"%%|%[^a-zA-Z%]*([a-zA-Z]?)")


def format_printf(pattern: str, values: list[str]) -> str:
    """Format like `printf`: the pattern is reused while there are values."""
    out: list[str] = []
    rest = list(values)

    def fill(found: re.Match[str]) -> str:
        return "%" if found[0] == "%%" else _convert(found[1], rest.pop(0) if rest else "")

    while True:
        before = len(rest)
        out.append(CONVERSION.sub(fill, ansi(pattern)))
        if not rest or len(rest) == before:
            return "".join(out)


def _convert(kind: str, value: str) -> str:
    if kind == "b":
        return ansi(re.sub(r"\\0(?=[0-7])", r"\\", value))
    if kind == "c":
        return value[:1]
    if kind in "xXo" and kind:
        return UNKNOWN
    return value
