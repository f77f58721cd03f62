"""Settings of shell hooks."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from hermes.codec.values import Value
from hermes.config.kinds import Seconds


class ShellHookSettings(Value):
    """A program that runs at a hook."""

    command: Annotated[str, "Program with arguments; it runs without a shell."] = ""
    matcher: Annotated[str, "Pattern that must match the full tool name."] = ""
    timeout: Annotated[Seconds, "Seconds until it is killed; at most 300."] = 60
    fail_closed: Annotated[bool, "Block the tool call if the program fails."] = False


ShellHooks: TypeAlias = Annotated[
    dict[str, tuple[ShellHookSettings, ...]], "Programs by hook: `pre_tool_call: [{command: …}]`."
]
AutoAccept: TypeAlias = Annotated[bool, "Run configured hooks without asking first."]
