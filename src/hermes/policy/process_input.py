"""Judges text for a running program: a command for a shell, data for most others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

from hermes.core.effects import RunCommand, SignalProcess
from hermes.policy.findings import Verdict
from hermes.policy.patterns import regex
from hermes.policy.programs.records import flagged
from hermes.policy.shell.state import UNKNOWN

Judge = Callable[[RunCommand], Verdict]

# Many programs run the rest of such a line in a shell.
_ESCAPE = regex(r"^\s*(?:[:\\]?!|\.(?:shell|system)\s)(.+)$", re.MULTILINE)


def judge_input(effect: SignalProcess, judge: Judge) -> Verdict:
    """Findings about what the text makes the program do. The program itself was judged when it
    was started."""
    cwd = effect.cwd or UNKNOWN
    alone = judge(RunCommand(script=effect.command, cwd=cwd))
    pipe = f"printf %s {shlex.quote(effect.text)} | {{ {effect.command}\n}}"
    verdicts = [judge(RunCommand(script=pipe, cwd=cwd))]
    if any(_program(command) in flagged("holds_a_shell") for command in alone.commands):
        verdicts.append(judge(RunCommand(script=effect.text, cwd=UNKNOWN)))
    verdicts += (judge(RunCommand(script=each, cwd=cwd)) for each in _ESCAPE.findall(effect.text))
    return Verdict(
        findings=tuple(
            each for verdict in verdicts for each in verdict.findings if each not in alone.findings
        ),
        commands=tuple(_new_commands(verdicts, alone)),
        hidden=tuple(each for verdict in verdicts for each in verdict.hidden),
        suspects=tuple(each for verdict in verdicts for each in verdict.suspects),
        sources=tuple({each: None for verdict in verdicts for each in verdict.sources}),
    )


def _new_commands(verdicts: list[Verdict], alone: Verdict) -> Iterator[str]:
    for number, verdict in enumerate(verdicts):
        # The first is the `printf` added here.
        for command in verdict.commands[0 if number else 1 :]:
            if command not in alone.commands:
                yield command


def _program(command: str) -> str:
    return command.partition(" ")[0].rpartition("/")[2]
