"""Defines a call style: how it starts, how it is parsed, and how far it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hermes.providers.textcalls.tape import Reading, TextTape

Read = Callable[[TextTape], Reading]


class CallStyle(NamedTuple):
    """`openers` are the texts it starts with, `tool_openers` those derived from the offered tools.
    `line`: only at the start of a line. `marked`: the markup is used only for calls; other styles
    look like ordinary text and count only where nothing but a call can be meant. `closers` are its
    end tokens: one without a start means that something was misread. `ends` starts text that the
    model invents as a result."""

    name: str
    read: Read
    openers: tuple[str, ...] = ()
    tool_openers: tuple[str, ...] = ()
    line: bool = False
    marked: bool = True
    closers: tuple[str, ...] = ()
    ends: str = ""

    def openers_for(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All openers; `{}` in a tool opener stands for each tool name."""
        made = (form.format(name) for form in self.tool_openers for name in names)
        return (*self.openers, *made)
