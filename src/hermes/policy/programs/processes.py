"""Programs that start, stop and watch what runs: processes, services, timers."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.running import own_program
from hermes.policy.shell.state import ANYTHING, UNKNOWN, Stream

# When a line of a crontab is to run.
PLANNED = regex(r"^\s*(@\w+|([\d*/,a-zA-Z-]+\s+){5})\s*")
DEBUGGER_RUNS = regex(
    r"(?:shell|!|python|pipe|call|print|source|make|platform shell)\s*(.*)", re.DOTALL
)


def check_kill(call: Call) -> Stream | None:
    words = list(call.arguments)
    if words[:1] in (["-l"], ["-L"], ["--list"]) or words[:2] == ["-s", "0"]:
        return None
    test_only = words[:1] == ["-0"]
    targets = words[1:] if words[:1] and words[0][:1] == "-" else words
    if words[:1] and words[0] in ("-s", "-n", "--signal") and len(words) > 1:
        targets = words[2:]
    targets = [word for word in targets if word != "--"]
    if "-1" in targets or (words and words[0] == "-1" and len(words) == 1):
        call.never("process_kill", "it kills every process")
    if not test_only and {"1", "+1"} & set(targets):
        call.never("process_kill", "it kills the process that all others hang on")
    own = all(word.startswith("%") for word in targets)
    if not own and not test_only:
        call.ask("process_kill", "It ends or changes processes that this session may not own.")
    return None


def check_gdb(call: Call) -> Stream | None:
    options = call.options(
        "-p -x -ex -iex -ix -c -s -d --pid --command --eval-command", permute=False
    )
    words = call.arguments
    if options.values("-p", "--pid") or any("attach" in word for word in words):
        call.ask("process_kill", "It reaches into another process.")
    for place, word in enumerate(words[:-1]):
        if word in ("-ex", "-iex", "--eval-command", "-o", "-O"):
            found = DEBUGGER_RUNS.match(words[place + 1])
            if found:
                call.ask("shell_escape", "It makes the debugger run a command.")
                call.runs_text(found[1])
    for name in (*options.operands[:1], *options.values("-x", "--command", "-ix")):
        own_program(call, name)
    call.work(reason="It runs a program of the project in a debugger.")
    return None


def check_crontab(call: Call) -> Stream | None:
    if call.arguments not in (["-l"], ["-V"]) and not call.options("-u").has("-l"):
        call.ask("persistence", "It changes what runs by itself at set times.")
        for line in call.stdin.text.replace(UNKNOWN, "").split("\n")[:50]:
            call.probes(PLANNED.sub("", line))
    return ANYTHING
