"""Programs that run another command: the inner command counts."""

from __future__ import annotations

import re
import shlex

from hermes.policy.call import Call, Options, quote_words
from hermes.policy.programs.records import is_known
from hermes.policy.programs.running import check_title, run_stream
from hermes.policy.redirections import check_variable
from hermes.policy.shell.state import ANYTHING, NOTHING, UNKNOWN, Stream

# Commands that may follow options with several values.
GIVEN = frozenset("sh bash rm dd mkfs shutdown reboot".split())


def _inner(call: Call, taking: str, skipped: int) -> list[str]:
    words = call.options(taking, permute=False).operands
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        name, _, value = words[0].partition("=")
        check_variable(call.follower, name, (value,), call.state)
        words = words[1:]
    return words[skipped:]


def check_wrapper(call: Call) -> Stream | None:
    out = _run_given(call, _inner(call, call.record.values, call.record.skip))
    if out is not None and out.endless and "ends" in call.record.flags:
        return ANYTHING
    return out


def _run_given(call: Call, words: list[str]) -> Stream | None:
    """Follow the operands as a command; a single one with blanks is a script for a shell."""
    if len(words) == 1 and " " in words[0].strip():
        return call.runs_text(words[0])
    return call.runs(words) if words else None


def check_rights(call: Call) -> Stream | None:
    if call.arguments in (["-V"], ["-K"], ["-k"]):
        return None
    taking, skipped = call.record.values, call.record.skip
    options = call.options(taking, permute=False)
    kind = "container" if call.name in ("nsenter", "unshare", "chroot", "bwrap") else "privilege"
    call.ask(kind, f"`{call.name}` runs it with other privileges or outside its confinement.")
    inner = _inner(call, taking, skipped)
    if text := options.value("-c", "--command"):
        return call.runs_text(text)
    if inner and inner[0] == "--":
        inner = inner[1:]
    found = bool(inner) and is_known(inner[0])
    for index, word in enumerate(call.arguments[1:20], 1):
        if word in GIVEN and not found:
            call.probes(quote_words(call.arguments[index:]))
    if call.name == "sudo":
        _enter(call, options.value("-D", "--chdir"))
        if not inner and options.has("-s", "-i", "--shell", "--login"):
            return run_stream(call, call.stdin)
    return call.runs(inner) if inner else None


def _enter(call: Call, folder: str | None) -> None:
    """Set the folder of the inner command."""
    if folder is not None:
        call.state = call.state.copy()
        call.state.cwd = call.path(folder)


def check_env(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    words = options.operands
    _enter(call, options.value("-C", "--chdir"))
    title = options.value("-a", "--argv0")
    if text := options.value("-S", "--split-string"):
        titled = [] if title is None else ["-a", title]
        return check_env(call.part([*titled, *_words(text), *words]))
    while words and (words[0] == "-" or "=" in words[0]):
        name, _, value = words.pop(0).partition("=")
        if name != "-":
            check_variable(call.follower, name, (value,), call.state)
            call.state = call.state.copy()
            call.state.set(name, (value,))
    if not words:
        return Stream(origin="environment")
    if title is not None:
        check_title(call, title, words)
    return call.runs(words)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def check_xargs(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    stdin = call.stdin
    for name in options.values("-a", "--arg-file"):
        call.reads(name)
        stdin = call.state.files.get(call.path(name), ANYTHING)
    command = options.operands or ["echo"]
    if stdin.endless:
        call.ask("disk", "It reads from a source that never ends.")
        if options.value("-P", "--max-procs") == "0" or re.search(r"[^&]&\s*$", command[-1]):
            call.never("power", "it starts processes without end")
    marker = options.value("-I", "-J", "--replace") or ("{}" if options.has("-i", "-I") else "")
    nulls = options.has("-0", "--null") or options.value("-d", "--delimiter") is not None
    values = _arguments(stdin, lines=bool(marker), nulls=nulls)
    if marker:
        for value in values:
            call.runs([each.replace(marker, value) for each in command], NOTHING)
        return ANYTHING
    return call.runs([*command, *values], NOTHING)


def _arguments(stdin: Stream, *, lines: bool, nulls: bool = False) -> list[str]:
    if stdin.text.strip() == UNKNOWN:
        return [UNKNOWN]
    if nulls:
        # The output of find is line-based here.
        found = re.split(r"[\0\n]", stdin.text)
    else:
        found = stdin.text.split("\n") if lines else stdin.text.replace("\0", " ").split()
    found = [each.strip("'\"") for each in found if each.strip()]
    return [*found[:20], UNKNOWN] if len(found) > 20 else found


def check_parallel(call: Call) -> None:
    words = call.options(call.record.values, permute=False).operands
    at = next((i for i, each in enumerate(words) if re.fullmatch(r":{3,4}\+?", each)), len(words))
    command, inputs = words[:at], [each for each in words[at:] if not each.startswith(":::")]
    values = (
        inputs
        if at < len(words) and words[at].startswith(":::")
        else _arguments(call.stdin, lines=True)
    )
    if at < len(words) and words[at].startswith("::::"):
        values = [UNKNOWN]
    if not command:
        for value in values:
            call.runs_text(value)
        return
    marked = any("{" in each for each in command)
    for value in values[:20] or [UNKNOWN]:
        filled = [_fill(each, value) for each in command]
        text = " ".join(filled if marked else [*filled, value])
        if UNKNOWN in text:
            call.runs(text.split())
        else:
            call.runs_text(text)


def _fill(word: str, value: str) -> str:
    return re.sub(r"\{[^{}]*\}", lambda _: value, word)


def check_cargo_watch(call: Call) -> Stream | None:
    """Check cargo watch: `--` and -s take a command, -x a subcommand of cargo."""
    options = call.options("-x -s -w -i -d -C --exec --shell --watch --ignore --delay --workdir")
    for text in options.values("-s", "--shell"):
        call.runs_text(text)
    for text in options.values("-x", "--exec"):
        call.runs_text(f"cargo {text}")
    words = options.operands[options.operands[:1] == ["watch"] :]
    call.work(reason="It runs again when files change.")
    return _run_given(call, words)


def check_perf(call: Call) -> Stream | None:
    words = call.arguments
    options = Options(
        words[1:],
        "-e -o -F -c -p -t -C -G -m -I -r -x -i -s -S -D -k --call-graph --event --output --freq "
        "--pid --repeat --input --duration --delay",
        permute=False,
    )
    if options.values("-p", "--pid"):
        call.ask("process_kill", "It watches another process.")
    call.writes(*options.values("-o", "--output"))
    call.work(reason="It measures a program of the project.")
    runs = words[:1] and words[0] in ("record", "stat", "trace", "mem", "c2c", "lock", "kmem")
    return call.runs(options.operands) if runs and options.operands else None


def check_nix(call: Call) -> Stream | None:
    """Check nix. The project's own flake may be built and run."""
    words = call.options(call.record.values, permute=False)
    verb, rest = (words.operands[:1] or [""])[0], words.operands[1:]
    at = next((i for i, word in enumerate(rest) if word in ("-c", "--command")), len(rest))
    named = [word for word in rest[:at] if not word.startswith("-")]
    here = all(re.match(r"\.?(/[\w./-]*)?#|\.($|/)", word) for word in named[:1])
    program = (named[:1] or [""])[0].rpartition("#")[2].rpartition(".")[2]
    if verb == "run" and is_known(program):
        behind = rest[rest.index(named[0]) + 1 :]
        call.runs([program, *(behind[1:] if behind[:1] == ["--"] else behind)])
    if verb in ("build", "fmt", "develop", "run", "log", "eval", "repl", "print-dev-env") and here:
        call.work("network", "It builds the project.")
        return call.runs(rest[at + 1 :]) if rest[at + 1 :] else None
    if verb == "flake" and named[:1] and named[0] in ("check", "show", "metadata", "info", "lock"):
        call.work("network", "It reads the project.")
        return None
    call.ask("package_install", "It downloads packages to run a command.")
    for text in call.options("-p -I --run --command -c --packages").values(
        "--run", "--command", "-c"
    ):
        call.runs_text(text)
    return None
