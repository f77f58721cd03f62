"""Tells whether a function starts itself more than once, and so without end."""

from __future__ import annotations

from hermes.policy.shell.tree import Block, Command, Function, Pipeline, Script, Simple, Text


def multiplies(name: str, body: Command) -> bool:
    """It calls itself in a pipe or in the background, as a fork bomb does."""
    calls = list(_calls(name, body, loose=False))
    return any(calls) and (len(calls) > 1 or calls[0])


def _calls(name: str, command: Command | Script, *, loose: bool) -> list[bool]:
    """One entry for each call of the function: whether it runs beside its caller."""
    match command:
        case Simple(words=words):
            first = words[0] if words else ()
            own = len(first) == 1 and isinstance(first[0], Text) and first[0].text == name
            return [loose] if own else []
        case Pipeline(commands=commands):
            return [found for each in commands for found in _calls(name, each, loose=True)]
        case Block(bodies=bodies):
            return [found for each in bodies for found in _calls(name, each, loose=loose)]
        case Function(body=inner):
            return _calls(name, inner, loose=loose)
        case Script(commands=commands, background=background):
            return [
                found
                for place, each in enumerate(commands)
                for found in _calls(name, each, loose=loose or place in background)
            ]
