"""Programs that start others for a purpose of their own: to measure, to show, to fetch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.policy.call import Call
from hermes.policy.options import Options
from hermes.policy.shell.state import Stream


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
    """What is built or run from the project's own flake is the project's business."""
    words = call.options("-I --override-input --arg --argstr --option --system -o", permute=False)
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


def check_expect(call: Call) -> Stream | None:
    call.ask("shell_escape", "It drives other programs by a script of its own.")
    for text in call.options("-c -f").values("-c"):
        for found in re.finditer(r"\bspawn\s+([^\n;]+)", text):
            call.runs_text(found[1])
    return None


def check_tmux(call: Call) -> Stream | None:
    reading = {"ls", "list-sessions", "list-windows", "capture-pane", "display-message", "-V"}
    words = list(call.arguments)
    while words and words[0] in ("-L", "-S", "-f") and len(words) > 1:
        del words[:2]
    if words and words[0] in reading:
        return None
    if words[:1] and words[0] in ("send-keys", "send"):
        call.ask("shell_escape", "It types into another terminal.")
    _last_texts(call, words[1:])
    if words[:1] and words[0] in ("new", "new-session") and any(" " in word for word in words):
        call.work(reason="It runs a command in a terminal of its own.")
    else:
        call.ask("persistence", "What it starts goes on by itself.")
    return None


def _last_texts(call: Call, words: Sequence[str]) -> None:
    for word in words:
        if " " in word:
            call.runs_text(word)
