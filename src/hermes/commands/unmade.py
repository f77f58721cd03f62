"""Detects turns in which every edit failed, in case the model claims otherwise."""

from __future__ import annotations

from hermes.commands.describe import describe_call
from hermes.core.messages import ToolCall, ToolResult

EDIT_TOOLS = frozenset(("write_file", "patch"))
SHOWN_FILES = 3


class FailedEdits:
    """The edits of one turn."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._failed: dict[str, None] = {}
        self._any_made = False

    def note(self, call: ToolCall, result: ToolResult) -> None:
        if call.name not in EDIT_TOOLS:
            return
        self._any_made |= not result.failed
        if result.failed:
            self._failed[describe_call(call, root=self._root).detail or "a file"] = None

    def warning(self) -> str:
        """A warning when every edit failed, else empty."""
        if self._any_made or not self._failed:
            return ""
        named = list(self._failed)[:SHOWN_FILES]
        more = len(self._failed) - len(named)
        files = ", ".join(named) + (f" and {more} more" if more else "")
        return f"No file was changed: every edit failed ({files})."
