"""Appends the context files of newly visited folders to tool results."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

from hermes.context.files import Scan, cut_middle, no_scan
from hermes.core.errors import ToolError
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.ports import Workspace

NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
ARGUMENTS = ("path", "file_path", "workdir")
FOLDER_CONTEXT_CHARS = 8_000
MOST_PARENTS = 5
_WORD = re.compile(r"(?:[\w.@+-]*/)+[\w.@+-]*")


class FolderContext:
    """For one session; a `core.turn.Remark`. `permits` tells whether a path may be read without
    asking; folders in `known` are skipped."""

    def __init__(
        self,
        workspace: Workspace,
        permits: Callable[[str], bool],
        *,
        known: Iterable[str],
        scan: Scan = no_scan,
        max_chars: int = FOLDER_CONTEXT_CHARS,
    ) -> None:
        self._workspace = workspace
        self._permits = permits
        self._seen = set(known)
        self._scan = scan
        self._max_chars = max_chars

    async def __call__(self, call: ToolCall, _result: ToolResult) -> str:
        found = [await self._read_context(folder) for folder in self._new_folders(call)]
        return "".join(text for text in found if text)

    def _new_folders(self, call: ToolCall) -> list[str]:
        """Returns new folders inside the workspace, outermost first."""
        root = self._workspace.root.rstrip("/")
        folders: dict[str, None] = {}
        for path in _call_paths(call):
            try:
                folder = posixpath.dirname(self._workspace.resolve(path))
                candidates = (posixpath.join(folder, posixpath.basename(path)), folder)
            except (ToolError, OSError, ValueError):
                continue
            for start in candidates:
                folders.update(dict.fromkeys(reversed(_parents_below(start, root))))
        new = [folder for folder in folders if folder not in self._seen]
        self._seen.update(new)
        return new

    async def _read_context(self, folder: str) -> str:
        for name in NAMES:
            path = posixpath.join(folder, name)
            if not self._permits(path):
                continue
            try:
                info = await self._workspace.stat(path)
                if info is None or info.kind != "file":
                    continue
                data = await self._workspace.read_bytes(path)
            except (ToolError, OSError):
                continue
            if text := data.decode("utf-8", "replace").strip():
                shown = posixpath.relpath(path, self._workspace.root)
                text, _ = cut_middle(self._scan(shown, text), self._max_chars, path)
                return f"\n\n<context file: {shown}>\n{text}\n</context>"
        return ""


def _call_paths(call: ToolCall) -> list[str]:
    named = [value for name in ARGUMENTS if isinstance(value := call.arguments.get(name), str)]
    command = call.arguments.get("command")
    if isinstance(command, str):
        named += _WORD.findall(command[:4_000])[:20]
    return [path for path in named if path.strip() and "\0" not in path]


def _parents_below(folder: str, root: str) -> list[str]:
    """Returns the folder and some of its parents below the root."""
    found: list[str] = []
    while folder.startswith(root + "/") and len(found) <= MOST_PARENTS:
        found.append(folder)
        folder = posixpath.dirname(folder)
    return found
