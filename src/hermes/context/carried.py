"""Extracts what compaction carries over verbatim: request, to-dos, files, tools, names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from hermes.codec.values import JsonValue, Value
from hermes.context.marks import ATTACHED
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.transcript import Transcript

_NAME = re.compile(
    r"""(?x)
    https?://[^\s"'<>)\]]+
    |(?<![\w/.@-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w
    |\b[\w-]+\.(?:py|js|ts|tsx|go|rs|c|h|cpp|java|rb|sh|md|txt|toml|yaml|yml|json|sql|html|css|csv)\b
    |\b[A-Z][A-Z0-9]+-\d+\b
    |\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b
    |\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b
    |\bv?\d+\.\d+\.\d+(?:[-+][\w.]+)?\b
    |\b[\w-]+:\d{2,5}\b
    |\#\d{2,}\b
    """
)
_LONGEST_NAME = 120


class FileSeen(Value):
    """A file that the model read or wrote. `lines` is like "1-80 of 80"; `number` is the record."""

    path: str
    lines: str
    digest: str = ""
    number: int = 0


def current_request(transcript: Transcript) -> list[UserMessage]:
    """Returns the message that began the newest user turn and the user messages since."""
    messages = transcript.messages
    for start in reversed(transcript.turn_starts):
        first = messages[start] if start < len(messages) else None
        if isinstance(first, UserMessage) and first.origin == "user":
            return [
                each
                for each in messages[start:]
                if isinstance(each, UserMessage) and each.origin == "user"
            ]
    return []


def open_todos(transcript: Transcript) -> list[str]:
    """Returns the open tasks of the newest list."""
    listed = (transcript.latest("todo") or {}).get("todos", ())
    signs = {"pending": "[ ]", "in_progress": "[>]"}
    return [
        f"{signs[item['status']]} {item.get('id', '')}: {item.get('content', '')}"
        for item in listed
        if isinstance(item, dict) and item.get("status") in signs
    ]


def files_seen(transcript: Transcript, upto: int) -> list[FileSeen]:
    """Returns files read or changed in the first `upto` messages, at their newest state, oldest
    first; deleted files are left out."""
    found: dict[str, FileSeen] = {}
    for message in transcript.messages[:upto]:
        for result in message.results if isinstance(message, ToolMessage) else ():
            if result.failed:
                continue
            number, details = transcript.number_of(result), result.details
            if result.name == "read_file" and isinstance(path := details.get("path"), str):
                seen = _file_seen(path, details, number, found.pop(path, None))
                found.update({path: seen} if seen else {})
            for path in _detail_paths(details, "files_modified", "files_created"):
                found.pop(path, None)
                found[path] = FileSeen(path=path, lines="written by you", number=number)
            for path in _detail_paths(details, "files_deleted"):
                found.pop(path, None)
    return list(found.values())


def tools_found(transcript: Transcript, upto: int) -> list[str]:
    """Returns the descriptions of tools found by tool_search."""
    found: dict[str, None] = {}
    for message in transcript.messages[:upto]:
        for result in message.results if isinstance(message, ToolMessage) else ():
            if result.name == "tool_search":
                found.update(dict.fromkeys(_detail_paths(result.details, "found")))
    return list(found)


def names_in_use(messages: Sequence[Message], known: Iterable[str]) -> list[str]:
    """Returns paths, URLs, ids, versions and similar names, newest and most used first."""
    last: dict[str, int] = {}
    count: dict[str, int] = {}
    for place, message in enumerate(messages):
        for name in _NAME.findall(_message_text(message)):
            if len(name) <= _LONGEST_NAME:
                last[name] = place
                count[name] = count.get(name, 0) + 1
    already_listed = set(known)
    already_listed.update(posixpath.basename(path) for path in known)
    ranked = sorted(last, key=lambda name: (-min(count[name], 4), -last[name]))
    return [name for name in ranked if name not in already_listed]


def _message_text(message: Message) -> str:
    match message:
        case UserMessage():
            return message.text.partition(ATTACHED)[0][:4_000]
        case AssistantMessage():
            arguments = (
                value
                for call in message.calls
                for value in call.arguments.values()
                if isinstance(value, str)
            )
            return "\n".join((message.text[:4_000], *(value[:400] for value in arguments)))
        case _:
            return ""


def _file_seen(
    path: str, details: dict[str, JsonValue], number: int, before: FileSeen | None
) -> FileSeen | None:
    if details.get("status") == "unchanged":
        return before
    start, shown, total = (details.get(key) for key in ("start", "shown", "total_lines"))
    if not (isinstance(start, int) and isinstance(shown, int)):
        return before
    lines = f"{start}-{start + shown - 1} of {total}"
    digest = str(details.get("digest", ""))
    if before is not None and before.digest == digest and before.lines != "written by you":
        lines = lines if lines in before.lines else f"{before.lines}; {lines}"
        lines = lines if len(lines) < 60 else f"most of {total}"
    return FileSeen(path=path, lines=lines, digest=digest, number=number)


def _detail_paths(details: dict[str, JsonValue], *keys: str) -> list[str]:
    values = (details.get(key) for key in keys)
    return [str(each) for value in values if isinstance(value, list) for each in value]
