"""The settings of hooks: programs that are told what happens."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from hermes.codec.values import Value
from hermes.config.kinds import Seconds


class ShellHookSettings(Value):
    """A program that is run at a hook."""

    command: Annotated[str, "The program with its arguments; no shell reads it."] = ""
    matcher: Annotated[str, "A pattern that the whole name of the tool matches."] = ""
    timeout: Annotated[Seconds, "Seconds until it is ended; 300 at most."] = 60
    fail_closed: Annotated[bool, "A call is not made if the program fails to say yes."] = False


ShellHooks: TypeAlias = Annotated[
    dict[str, tuple[ShellHookSettings, ...]], "Programs by hook: `pre_tool_call: [{command: …}]`."
]
AutoAccept: TypeAlias = Annotated[bool, "Run hooks of the settings without asking first."]
