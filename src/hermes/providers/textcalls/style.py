"""What a style of writing calls is: how it begins, how it is read, and how far it is believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hermes.providers.textcalls.tape import Reading, Tape

Read = Callable[[Tape], Reading]


class Style(NamedTuple):
    """`openers` are the texts that it begins with, `tool_openers` those that follow from the tools
    on offer. `line`: it begins at the start of a line only. `marked`: nobody writes its mark-up
    but to call; any other style looks like ordinary text and counts only where nothing but a call
    can be meant. `closers` are ends that belong to it: one without its beginning tells that
    something was misread. `ends` begins text that the model made up as the result of its call."""

    name: str
    read: Read
    openers: tuple[str, ...] = ()
    tool_openers: tuple[str, ...] = ()
    line: bool = False
    marked: bool = True
    closers: tuple[str, ...] = ()
    ends: str = ""

    def beginnings(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All openers; `{}` in one that follows from the tools is the name of each."""
        made = (form.format(name) for form in self.tool_openers for name in names)
        return (*self.openers, *made)
