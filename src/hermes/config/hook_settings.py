"""The settings of hooks: programs that are told what happens, and how long callbacks may take."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from hermes.codec.values import Value
from hermes.config.kinds import Count, Seconds


class ShellHookSettings(Value):
    """A program that is run at a hook."""

    command: Annotated[str, "The program with its arguments; no shell reads it."] = ""
    matcher: Annotated[str, "A pattern that the whole name of the tool matches."] = ""
    timeout: Annotated[Seconds, "Seconds until it is ended; 300 at most."] = 60
    fail_closed: Annotated[bool, "A call is not made if the program fails to say yes."] = False


class PluginSettings(Value):
    hook_timeout: Annotated[Count, "Seconds for one callback of a hook; 0 for no limit."] = 30


ShellHooks: TypeAlias = Annotated[
    dict[str, tuple[ShellHookSettings, ...]], "Programs by hook: `pre_tool_call: [{command: …}]`."
]
AutoAccept: TypeAlias = Annotated[bool, "Run hooks of the settings without asking first."]
