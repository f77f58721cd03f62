"""Lets hooks change the output of a command before the model sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.values import replace
from hermes.core.ports import CommandResult

# The command, its output and its exit code; None leaves the output unchanged.
Change = Callable[[str, str, int], Awaitable[str | None]]


class TerminalOutput:
    """For one session; without a `change`, output stays as it is."""

    def __init__(self, change: Change | None = None) -> None:
        self._change = change

    async def of(self, command: str, result: CommandResult) -> CommandResult:
        if self._change is None:
            return result
        text = await self._change(command, result.output, result.exit_code)
        return result if text is None else replace(result, output=text)
