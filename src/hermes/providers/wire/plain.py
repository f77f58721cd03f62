"""A fast path for events with nothing but visible text, the bulk of most replies."""

from __future__ import annotations

from typing import Literal

import msgspec


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: str | None = None
    content: str | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    finish_reason: None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


class _Block(msgspec.Struct, gc=False):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    delta: _Block


class _OutputDelta(msgspec.Struct, gc=False):
    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int


_chunk = msgspec.json.Decoder(_Chunk).decode
_block = msgspec.json.Decoder(_BlockDelta).decode
_output = msgspec.json.Decoder(_OutputDelta).decode
_MISMATCH = (msgspec.DecodeError, UnicodeError, RecursionError)


def chat_words(data: bytes) -> str | None:
    """The text of a chunk with nothing else in it; None for any other event."""
    try:
        return _chunk(data).choices[0].delta.content or ""
    except _MISMATCH:
        return None


def messages_words(data: bytes) -> str | None:
    """The text of a text delta; None for any other event."""
    try:
        return _block(data).delta.text
    except _MISMATCH:
        return None


def responses_words(data: bytes) -> tuple[str, str] | None:
    """The text of a text delta and its item number; None for any other event."""
    try:
        found = _output(data)
    except _MISMATCH:
        return None
    return found.delta, str(found.output_index)
