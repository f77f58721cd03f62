"""Resolves "it", "there" and "the second one" from earlier calls and results."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolCall, ToolResult
from hermes.providers.offline.commands import parse_listing
from hermes.providers.offline.tool_answers import (
    found_count,
    found_files,
    has_succeeded,
    is_unchanged,
    output,
)
from hermes.providers.offline.transcript import DialogueTurn

# Programs whose last argument is the only file they are about.
_ABOUT_ONE_FILE = frozenset({"tail", "head", "wc", "cat", "stat", "file", "python3", "bash"})
_OF_TWO_FILES = frozenset({"mv", "cp"})


class ReferenceContext:
    """What was last shown. `items` is the newest list, `count` its full length."""

    def __init__(self) -> None:
        self.file = ""
        self.folder = ""
        self.items: tuple[str, ...] = ()
        self.count = 0
        self.process = ""
        self.failure: tuple[ToolCall, ToolResult] | None = None
        self.read: tuple[ToolCall, ToolResult] | None = None
        self.shown: dict[tuple[object, object, object], ToolResult] = {}
        self._cwd = ""

    def resolve(self, reference: str) -> str:
        """The path that is meant, or "" if nothing fits."""
        if reference == "it":
            return self.file or (self.items[0] if len(self.items) == 1 else "")
        if reference == "there":
            return self.folder
        place = int(reference)
        index = place - 1 if place > 0 else len(self.items) + place
        return self.items[index] if 0 <= index < len(self.items) else ""

    def note(self, call: ToolCall, result: ToolResult) -> None:
        if not has_succeeded(result):
            self.failure = (call, result)
            if call.name != "terminal":
                return
        match call.name:
            case "read_file":
                self._note_read(call, result)
            case "write_file" | "patch":
                self.file = _text(call.arguments, "path") or self.file
            case "search_files":
                self._note_search(call, result)
            case "terminal":
                self._note_command(_text(call.arguments, "command"), result)
            case "process":
                ended = call.arguments.get("action") == "kill"
                self.process = "" if ended else _text(call.arguments, "session_id") or self.process
            case _:
                pass

    def _note_read(self, call: ToolCall, result: ToolResult) -> None:
        """A result that only says "unchanged" keeps the earlier result with the lines."""
        self.file = _text(call.arguments, "path")
        if not is_unchanged(result):
            wanted = call.arguments
            self.shown[wanted.get("path"), wanted.get("offset"), wanted.get("limit")] = result
            self.read = (call, result)

    def _note_search(self, call: ToolCall, result: ToolResult) -> None:
        files = found_files(result)
        self.folder = _text(call.arguments, "path") or "."
        if files:
            self.items = files
            self.count = max(found_count(result), len(files))
            self.file = files[0]

    def _note_command(self, script: str, result: ToolResult) -> None:
        self.process = _text(result.details, "session_id") or self.process
        self._note_cwd(_text(result.details, "cwd"))
        if not has_succeeded(result):
            return
        words = _words(script)
        flags = "".join(word for word in words[1:] if word.startswith("-"))
        entries = parse_listing(script, output(result))
        if entries and words[0] == "ls" and "d" not in flags:
            paths = [word for word in words[1:] if not word.startswith("-")]
            self.folder = paths[-1] if paths else "."
        if entries:
            self.items = tuple(entry.path for entry in entries)
            self.count = len(entries)
            files = [entry.path for entry in entries if not entry.is_folder]
            ordered = any(flag in flags for flag in "St") or words[0] == "find"
            if files and (ordered or len(entries) == 1):
                self.file = files[0]
        else:
            self._note_program(words)

    def _note_program(self, words: list[str]) -> None:
        if len(words) < 2:
            return
        program, last = words[0], words[-1]
        if (program in _ABOUT_ONE_FILE or program in _OF_TWO_FILES) and not last.startswith("-"):
            self.file = last
        elif program == "mkdir":
            self.folder = last
        elif program == "rm":
            self.file = ""

    def _note_cwd(self, cwd: str) -> None:
        """In another folder, relative names mean other things."""
        if cwd and self._cwd and cwd != self._cwd:
            self.file, self.items, self.folder = "", (), "."
        self._cwd = cwd or self._cwd


def references_after(exchanges: Iterable[DialogueTurn]) -> ReferenceContext:
    focus = ReferenceContext()
    for exchange in exchanges:
        for done in exchange.rounds:
            for call, result in zip(done.calls, done.results, strict=False):
                focus.note(call, result)
    return focus


def _words(script: str) -> list[str]:
    try:
        return shlex.split(script)
    except ValueError:
        return []


def _text(values: JsonObject, name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
