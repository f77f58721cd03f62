"""Programs that run another command: the inner command counts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hermes.policy.call import Call, Options, quote_words
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
    taking, skipped = call.record.values, call.record.skip
    inner = _inner(call, taking, skipped)
    if call.name in ("strace", "ltrace") and "-p" in call.arguments:
        call.ask("process_kill", "It watches what another process reads and writes.")
    if call.name in ("strace", "ltrace", "time"):
        for name in call.options(taking, permute=False).values("-o", "--output"):
            if name[:1] in ("|", "!"):
                call.ask("shell_escape", "It gives what it finds out to another program.")
                call.runs_text(name[1:])
            call.writes(name)
    return _given(call, inner)


def _given(call: Call, words: list[str]) -> Stream | None:
    """A single operand with blanks is a script for a shell."""
    if len(words) == 1 and " " in words[0].strip():
        return call.runs_text(words[0])
    return call.runs(words) if words else None


def check_rights(call: Call) -> Stream | None:
    if call.arguments in (["-V"], ["-K"], ["-k"]):
        return None
    taking, skipped = call.record.values, call.record.skip
    options = call.options(taking, permute=False)
    kind = "container" if call.name in ("nsenter", "unshare", "chroot", "bwrap") else "privilege"
    call.ask(kind, f"`{call.name}` runs it with other rights or outside its bounds.")
    inner = _inner(call, taking, skipped)
    if text := options.value("-c", "--command"):
        return call.runs_text(text)
    if inner and inner[0] == "--":
        inner = inner[1:]
    for place, word in enumerate(call.arguments[1:20], 1):
        if word in GIVEN:
            call.probes(quote_words(call.arguments[place:]))
    if call.name == "sudo":
        _enter(call, options.value("-D", "--chdir"))
        if not inner and options.has("-s", "-i", "--shell", "--login"):
            return run_stream(call, call.stdin)
    return call.runs(inner) if inner else None


def _enter(call: Call, folder: str | None) -> None:
    """Sets the folder of the inner command."""
    if folder is not None:
        call.state = call.state.copy()
        call.state.cwd = call.path(folder)


def check_su(call: Call) -> None:
    options = call.options(call.record.values)
    call.ask("privilege", "`su` runs it as somebody else.")
    for text in options.values("-c", "--command", "--session-command"):
        call.runs_text(text)


def check_env(call: Call) -> Stream | None:
    words = list(call.arguments)
    title: str | None = None
    while words:
        word = words[0]
        if word in ("-u", "-C", "--unset", "--chdir") and len(words) > 1:
            _enter(call, words[1] if word in ("-C", "--chdir") else None)
            del words[:2]
        elif word.startswith(("--chdir=", "-C")):
            _enter(call, word.removeprefix("--chdir=").removeprefix("-C"))
            del words[0]
        elif word in ("-a", "--argv0") and len(words) > 1:
            title = words[1]
            del words[:2]
        elif word.startswith("--argv0="):
            title = words.pop(0).partition("=")[2]
        elif word in ("-S", "--split-string") or word.startswith(("-S", "--split-string=")):
            text = word.removeprefix("--split-string=").removeprefix("-S")
            rest = words[1:] if text and text != "--split-string" else words[2:]
            text = text if text and text != "--split-string" else (words[1:2] or [""])[0]
            words = [*_words(text), *rest]
        elif word[:1] == "-":
            del words[0]
        elif "=" in word:
            name, _, value = word.partition("=")
            check_variable(call.follower, name, (value,), call.state)
            call.state = call.state.copy()
            call.state.set(name, (value,))
            del words[0]
        else:
            if title is not None:
                check_title(call, title, words)
            return call.runs(words)
    return Stream(origin="environment")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def check_xargs(call: Call) -> Stream | None:
    options = call.options(
        call.record.values,
        permute=False,
    )
    stdin = call.stdin
    for name in options.values("-a", "--arg-file"):
        call.reads(name)
        stdin = call.state.files.get(call.path(name), ANYTHING)
    command = options.operands or ["echo"]
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
    command, given = words[:at], [each for each in words[at:] if not each.startswith(":::")]
    values = (
        given
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
        filled = [_filled(each, value) for each in command]
        text = " ".join(filled if marked else [*filled, value])
        if UNKNOWN in text:
            call.runs(text.split())
        else:
            call.runs_text(text)


def _filled(word: str, value: str) -> str:
    return re.sub(r"\{[^{}]*\}", lambda _: value, word)


def check_watch(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    words = options.operands
    # Without -x the words are joined, and quotes around a script are lost.
    quoted = len(words) > 1 and any(" " in word for word in words)
    out = call.runs(words) if words and (quoted or options.has("-x", "--exec")) else None
    if words and not options.has("-x", "--exec"):
        return call.runs_text(" ".join(words))
    return out


def check_cargo_watch(call: Call) -> Stream | None:
    """`--` and -s take a command, -x a subcommand of cargo."""
    options = call.options("-x -s -w -i -d -C --exec --shell --watch --ignore --delay --workdir")
    for text in options.values("-s", "--shell"):
        call.runs_text(text)
    for text in options.values("-x", "--exec"):
        call.runs_text(f"cargo {text}")
    words = options.operands[options.operands[:1] == ["watch"] :]
    call.work(reason="It works again when files change.")
    return _given(call, words)


def check_flock(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    words = options.operands[1:]
    if words[:1] == ["-c"] or options.value("-c", "--command"):
        return call.runs_text(options.value("-c", "--command") or " ".join(words[1:]))
    return call.runs(words) if words else None


def check_systemd_run(call: Call) -> Stream | None:
    call.ask("persistence", "The system runs it later or by itself.")
    inner = _inner(
        call, "-p -u -M -H --unit --uid --gid --on-calendar --on-active --property --slice", 0
    )
    return call.runs(inner) if inner else None


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
    """The project's own flake may be built and run."""
    words = call.options(call.record.values, permute=False)
    verb, rest = (words.operands[:1] or [""])[0], words.operands[1:]
    at = next((i for i, word in enumerate(rest) if word in ("-c", "--command")), len(rest))
    named = [word for word in rest[:at] if not word.startswith("-")]
    here = all(re.match(r"\.{0,1}/?[\w./-]*#|\.{1}($|/|#)|nixpkgs#?$", word) for word in named[:1])
    if verb in ("build", "fmt", "develop", "run", "log", "eval", "repl", "print-dev-env") and here:
        call.work("network", "It builds what the project names.")
        program = (named[:1] or [""])[0].rpartition("#")[2].rpartition(".")[2]
        if verb == "run" and call.follower.knows(program):
            behind = words.operands[words.operands.index(named[0]) + 1 :]
            return call.runs([program, *(behind[1:] if behind[:1] == ["--"] else behind)])
        return call.runs(rest[at + 1 :]) if rest[at + 1 :] else None
    if verb == "flake" and named[:1] and named[0] in ("check", "show", "metadata", "info", "lock"):
        call.work("network", "It looks at the project.")
        return None
    return check_nix_shell(call)


def check_nix_shell(call: Call) -> Stream | None:
    options = call.options("-p -I --run --command -c --packages")
    call.ask("package_install", "It fetches packages to run a command with.")
    for text in options.values("--run", "--command", "-c"):
        call.runs_text(text)
    return None


def check_expect(call: Call) -> None:
    call.ask("shell_escape", "It drives other programs by a script of its own.")
    for text in call.options("-c -f").values("-c"):
        for found in re.finditer(r"\bspawn\s+([^\n;]+)", text):
            call.runs_text(found[1])


def check_tmux(call: Call) -> None:
    reading = {"ls", "list-sessions", "list-windows", "capture-pane", "display-message", "-V"}
    words = list(call.arguments)
    while words and words[0] in ("-L", "-S", "-f") and len(words) > 1:
        del words[:2]
    if words and words[0] in reading:
        return
    if words[:1] and words[0] in ("send-keys", "send"):
        call.ask("shell_escape", "It types into another terminal.")
    _last_texts(call, words[1:])
    if words[:1] and words[0] in ("new", "new-session") and any(" " in word for word in words):
        call.work(reason="It runs a command in a terminal of its own.")
    else:
        call.ask("persistence", "What it starts goes on by itself.")


def _last_texts(call: Call, words: Sequence[str]) -> None:
    for word in words:
        if " " in word:
            call.runs_text(word)
