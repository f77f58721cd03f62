"""Programs that run another one in a version, or with variables, of their choice."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.options import Options
from hermes.policy.programs.records import Runs


def runs_chosen(call: Call) -> bool:
    """Whether the call runs another command by its record's `runs`; it is followed then."""
    runs = call.record.runs
    if runs is None:
        return False
    verb = (call.options(runs.values, permute=False).operands or [""])[0]
    if not verb or verb not in runs.verbs.split():
        return False
    _follow(call, runs, verb)
    return True


def _follow(call: Call, chooser: Runs, verb: str) -> None:
    words = call.arguments[call.arguments.index(verb) + 1 :]
    if chooser.marked:
        for text in Options(words, chooser.values).values("-c", "--command"):
            call.runs_text(text)
            return
    if "--" in words and (chooser.marked or not _command(words, chooser)):
        at = words.index("--")
        inner = words[at + 1 :]
        if verb == "run" and chooser.named:
            # `proto run node -- -e …`: what stands behind is for the program that is named.
            inner = [*words[:at][:1], *inner]
    else:
        inner = [] if chooser.marked else _command(words, chooser)
    call.work(reason=f"`{call.name} {verb}` works in the project.")
    if not inner or (chooser.script and not call.follower.knows(inner[0])):
        return
    call.runs(inner)


def _command(words: list[str], chooser: Runs) -> list[str]:
    operands = Options(words, chooser.values, permute=False).operands
    if chooser.named and operands and not operands[0][:1].isdigit() and operands[0][:1] != "v":
        # Without a version, the one that the project names is meant.
        return operands
    return operands[chooser.named :]
