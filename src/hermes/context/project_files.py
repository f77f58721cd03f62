"""Finds project context files and limits how much of them is sent."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.ports import Workspace

OWN_NAMES = (".hermes.md", "HERMES.md")
GUEST_NAMES = (("AGENTS.md", "agents.md"), ("CLAUDE.md", "claude.md"))
LEAST_CHARS = 20_000
MOST_CHARS = 500_000
SHARE = 0.06
HEAD, TAIL = 0.7, 0.2


# Maps name and text of a file to the text that may be shown, or to the reason why not.
Scan = Callable[[str, str], str]


def no_scan(_name: str, text: str) -> str:
    return text


class ProjectContext(Value):
    """Prompt text, its files, and warnings for the person."""

    text: str = ""
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def project_context(
    cwd: Path, *, window: int, max_chars: int | None = None, scan: Scan = no_scan
) -> ProjectContext:
    """Returns the first kind of context file that exists and is not empty; kinds are not mixed."""
    found = _find(cwd)
    if not found:
        return ProjectContext()
    limit = max_chars or limit_for(window)
    blocks: list[str] = []
    warnings: list[str] = []
    for path, text in found:
        name = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
        shown, cut = cut_middle(scan(name, text), limit, str(path))
        blocks.append(f"## {name}\n\n{shown}")
        if cut:
            warnings.append(f"{name} is long: {cut} characters in the middle are not sent.")
    return ProjectContext(
        text="# Project Context\n\n" + "\n\n".join(blocks),
        files=tuple(str(path) for path, _ in found),
        warnings=tuple(warnings),
    )


def limit_for(window: int) -> int:
    return max(LEAST_CHARS, min(MOST_CHARS, int(window * CHARS_PER_TOKEN * SHARE)))


def cut_middle(text: str, limit: int, path: str) -> tuple[str, int]:
    """Cuts the middle of a long text; returns the text and how much was cut."""
    if len(text) <= limit:
        return text, 0
    head, tail = text[: int(limit * HEAD)], text[-int(limit * TAIL) :]
    cut = len(text) - len(head) - len(tail)
    marker = f"\n\n[… {cut} of {len(text)} characters left out; read {path} for all of it …]\n\n"
    return head + marker + tail, cut


def _find(cwd: Path) -> list[tuple[Path, str]]:
    for folder in _up_to_git_root(str(cwd)):
        if own := _first(folder, OWN_NAMES):
            path, text = own
            _, closing, body = text.partition("\n---\n")
            has_frontmatter = text.startswith("---\n") and closing
            return [(path, body.strip() if has_frontmatter else text)]
    for names in GUEST_NAMES:
        if guest := _first(str(cwd), names):
            return [guest]
    rules = [".cursorrules"]
    if os.path.isdir(f"{cwd}/.cursor/rules"):  # noqa: PTH112 - see `_first`
        rules += (str(path) for path in sorted((cwd / ".cursor" / "rules").glob("*.mdc")))
    return [found for name in rules if (found := _first(str(cwd), (name,)))]


def _up_to_git_root(cwd: str) -> list[str]:
    folders = [cwd]
    while not os.path.exists(os.path.join(folders[-1], ".git")):  # noqa: PTH110, PTH118 - the same
        above = os.path.dirname(folders[-1])  # noqa: PTH120 - the same
        if above == folders[-1]:
            return [cwd]
        folders.append(above)
    return folders


def _first(folder: str, names: Iterable[str]) -> tuple[Path, str] | None:
    """Uses os.path instead of Path: every new session checks a dozen paths that rarely exist."""
    for name in names:
        path = os.path.join(folder, name)  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113
            with suppress(OSError):
                if text := Path(path).read_text("utf-8", "replace").strip():
                    return Path(path), text
    return None


NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
ARGUMENTS = ("path", "file_path", "workdir")
FOLDER_CONTEXT_CHARS = 8_000
MOST_PARENTS = 5
_WORD = re.compile(r"(?:[\w.@+-]*/)+[\w.@+-]*")


class FolderContext:
    """For one session; a `Remark` of the core. `permits` tells whether a path may be read without
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
        paths = [value for name in ARGUMENTS if isinstance(value := call.arguments.get(name), str)]
        if isinstance(command := call.arguments.get("command"), str):
            paths += _WORD.findall(command[:4_000])[:20]
        folders: dict[str, None] = {}
        for path in paths:
            if not path.strip() or "\0" in path:
                continue
            try:
                folder = posixpath.dirname(self._workspace.resolve(path))
            except (ToolError, OSError, ValueError):
                continue
            for start in (posixpath.join(folder, posixpath.basename(path)), folder):
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


def _parents_below(folder: str, root: str) -> list[str]:
    """Returns the folder and some of its parents below the root."""
    found: list[str] = []
    while folder.startswith(root + "/") and len(found) <= MOST_PARENTS:
        found.append(folder)
        folder = posixpath.dirname(folder)
    return found
