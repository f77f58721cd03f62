"""Parses a schema-constrained reply while it streams."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Literal

from hermes.codec.values import JsonValue
from hermes.core.messages import AssistantMessage, Reasoning, Text, ToolCall
from hermes.core.prompt import CallNamed, Delta, TextDelta
from hermes.providers.embedded.schema import ARGUMENTS, TEXT, TOOL

# Some models put a code fence around all JSON.
_START = r"\s*(?:```(?:json)?\s*)?\{\s*"
_TEXT = re.compile(rf'{_START}"{TEXT}"\s*:\s*"')
_TOOL = re.compile(rf'{_START}"{TOOL}"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = re.compile(r'[^"\\]+')
# A whole escape sequence; a surrogate pair counts as one.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}|[^u])")
_LONGEST_ESCAPE = 12
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]")

ReplyStage = Literal["opening", "text", "call", "closed"]


class ConstrainedReply:
    """Takes JSON as it arrives; `message` is the reply once it is complete."""

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._stage: ReplyStage = "opening"
        self._text: list[str] = []
        self._held = ""
        self._tool = ""

    def feed(self, piece: str) -> Iterator[Delta]:
        self._raw.append(piece)
        if self._stage == "opening":
            piece = yield from self._open()
        if self._stage == "text":
            yield from self._read_text(piece)

    @property
    def lacks_form(self) -> bool:
        """There is output, but it has neither text nor a call."""
        return self._stage == "opening" and bool("".join(self._raw).strip())

    def finish(self) -> Iterator[Delta]:
        """Ends the reply; output without the expected form counts as text."""
        if self.lacks_form:
            self._text = ["".join(self._raw)]
            self._stage = "closed"
            yield TextDelta(text=self._text[0])

    def message(self, whole: AssistantMessage, *, call_id: str) -> AssistantMessage:
        """`whole` is the message with the JSON; its reasoning and stop reason are kept."""
        thoughts = tuple(part for part in whole.parts if isinstance(part, Reasoning))
        if self._stage != "call":
            text = "".join(self._text)
            return AssistantMessage(
                parts=(*thoughts, Text(text=text)) if text else thoughts, stop=whole.stop
            )
        call = self._call(call_id)
        stop = "calls" if whole.stop == "done" else whole.stop
        return AssistantMessage(parts=(*thoughts, call), stop=stop)

    def _open(self) -> Generator[Delta, None, str]:
        """Detects what the reply is; returns the rest of the text so far."""
        so_far = "".join(self._raw)
        if found := _TEXT.match(so_far):
            self._stage = "text"
            return so_far[found.end() :]
        if found := _TOOL.match(so_far):
            self._stage = "call"
            self._tool = _unquote(found[1])
            yield CallNamed(name=self._tool)
        return ""

    def _read_text(self, piece: str) -> Iterator[Delta]:
        pending, at = self._held + piece, 0
        self._held = ""
        said: list[str] = []
        while at < len(pending):
            if pending[at] == '"':
                self._stage = "closed"
                break
            found = _PLAIN.match(pending, at)
            if found:
                said.append(found[0])
            elif _is_open(pending[at:]) or not (found := _ESCAPE.match(pending, at)):
                self._held = pending[at:]
                break
            else:
                said.append(_unquote(found[0]))
            at = found.end()
        if said:
            self._text += said
            yield TextDelta(text="".join(said))

    def _call(self, call_id: str) -> ToolCall:
        arguments = _parse_arguments("".join(self._raw))
        if arguments is None:
            broken = "the call is incomplete"
            return ToolCall(id=call_id, name=self._tool, broken=broken)
        return ToolCall(id=call_id, name=self._tool, arguments=arguments)


def _is_open(escape: str) -> bool:
    """More characters may belong to this escape sequence."""
    if len(escape) >= _LONGEST_ESCAPE:
        return False
    if len(escape) < 2 or (escape[1] == "u" and len(escape) < 6):
        return True
    return _HIGH_SURROGATE.match(escape) is not None and (r"\u".startswith(escape[6:8]))


def _unquote(text: str) -> str:
    try:
        value: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return value.encode("utf-8", "replace").decode("utf-8")


def _parse_arguments(raw: str) -> dict[str, JsonValue] | None:
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(raw, raw.index("{"))
    except (ValueError, RecursionError):
        return None
    arguments = value.get(ARGUMENTS) if isinstance(value, dict) else None
    return arguments if isinstance(arguments, dict) else None
