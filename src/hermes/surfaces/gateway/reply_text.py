"""The text of a reply before it is posted: reasoning tags and markers for silence."""

from __future__ import annotations

import re

_REASONING = re.compile(
    r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)\s*", re.DOTALL | re.IGNORECASE
)
_MARKERS = ("[silent]", "silent", "no_reply", "no reply")
SILENT_NOTICE = "I have nothing to add."


def strip_reasoning(text: str) -> str:
    return _REASONING.sub("", text)


def is_silent(text: str) -> bool:
    """Whether the reply is exactly a marker for silence."""
    return text.strip().lower() in _MARKERS


def may_become_silent(text: str) -> bool:
    """Whether the beginning of a reply may still turn out to be a marker."""
    begun = text.strip().lower()
    return any(marker.startswith(begun) for marker in _MARKERS)


def may_begin_tag(text: str) -> bool:
    """Whether the text ends inside a reasoning tag that has only begun."""
    return bool(re.search(r"<[a-z]{0,9}$", text, re.IGNORECASE))
