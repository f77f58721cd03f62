"""Judges input for a running program by what the text makes the program do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from hermes.core.effects import RunCommand, SignalProcess
from hermes.policy.findings import Verdict
from hermes.policy.patterns import regex
from hermes.policy.programs.records import flagged
from hermes.policy.shell.state import UNKNOWN

# Many programs run the rest of such a line in a shell.
_ESCAPE = regex(r"^\s*(?:[:\\]?!|\.(?:shell|system)\s)(.+)$", re.MULTILINE)


def judge_input(effect: SignalProcess, verdict_of: Callable[[RunCommand], Verdict]) -> Verdict:
    """Return the findings about what the text makes the program do. The program itself was judged
    when it was started."""
    cwd = effect.cwd or UNKNOWN
    alone = verdict_of(RunCommand(script=effect.command, cwd=cwd))
    pipe = f"printf %s {shlex.quote(effect.text)} | {{ {effect.command}\n}}"
    verdicts = [verdict_of(RunCommand(script=pipe, cwd=cwd))]
    programs = {command.partition(" ")[0].rpartition("/")[2] for command in alone.commands}
    if not programs.isdisjoint(flagged("holds_a_shell")):
        verdicts.append(verdict_of(RunCommand(script=effect.text, cwd=UNKNOWN)))
    commands = _ESCAPE.findall(effect.text)
    verdicts += (verdict_of(RunCommand(script=each, cwd=cwd)) for each in commands)
    return Verdict(
        findings=tuple(
            each for verdict in verdicts for each in verdict.findings if each not in alone.findings
        ),
        # The first command of the first verdict is the `printf` added here.
        commands=tuple(
            command
            for number, verdict in enumerate(verdicts)
            for command in verdict.commands[0 if number else 1 :]
            if command not in alone.commands
        ),
        hidden=tuple(each for verdict in verdicts for each in verdict.hidden),
        tainted_files=tuple(each for verdict in verdicts for each in verdict.tainted_files),
        sources=tuple({each: None for verdict in verdicts for each in verdict.sources}),
    )
