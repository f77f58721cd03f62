"""Files that programs of others may write while they serve a session are noted as commands' are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.ports import Workspace
from hermes.mcp.calls import FileWatch
from hermes.policy.taint.sight import LocalTaintTracker

if TYPE_CHECKING:
    from hermes.policy.rules import Rules
    from hermes.policy.suspects.suspects import Suspects

MOST_PATHS = 20
LONGEST_PATH = 400


def watch_of(
    rules: Rules, suspects: Callable[[], Suspects], redact: Callable[[str], str]
) -> FileWatch:
    """A look for what was written is left out where the server says that it only reads: a file
    that it wrote all the same is still told by its time."""

    def watch(
        workspace: Workspace, arguments: JsonObject, reads: bool
    ) -> AbstractAsyncContextManager[None]:
        witness = LocalTaintTracker(rules, suspects(), redact)
        names = list(paths_in(arguments))[:MOST_PATHS]
        # Of a session that works elsewhere no folder of this machine is the project.
        root = next(iter(names), "") if workspace.is_remote else workspace.root
        if not root or not witness.has_untrusted_text:
            return nullcontext()
        return witness.track_command(root, names, look=not reads and not workspace.is_remote)

    return watch


def paths_in(value: JsonValue) -> Iterator[str]:
    """Texts that name a place of this machine by themselves."""
    if isinstance(value, str):
        if value.startswith(("/", "~/")) and len(value) < LONGEST_PATH and "\n" not in value:
            yield str(Path(value).expanduser())
    elif isinstance(value, dict):
        for each in value.values():
            yield from paths_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from paths_in(each)
