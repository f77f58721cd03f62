"""Reads token limits from error messages: the real context window and the maximum output."""

from __future__ import annotations

import re

# Patterns are compiled on use: most runs never see such an error.
_NUMBER = r"(\d[\d,_.]{0,12}\d|\d)\s*(k\b)?"

# The number after each of these is the context window.
_WINDOW = (
    r"maximum context length (?:is|of)[^\d]{0,12}",
    r"maximum context (?:size|window) (?:is|of)?[^\d]{0,12}",
    r"context (?:length|window|size) (?:is|of)(?: only)?[^\d]{0,12}",
    r"context (?:length|window|size)[^\d]{0,6}\(?(?:n_ctx)?[^\d]{0,6}",
    r"context limit[^\d]{0,4}",
    r"max_model_len[^\d]{0,16}",
    r"n_ctx[\"']?\s*[:=(]?\s*",
    r"context_length[\"']?\s*[:=]\s*",
    r"tokens?\s*>\s*",
    r"exceeds? (?:the )?(?:limit|maximum)(?: of)?[^\d]{0,12}",
    r"limit (?:is|of)[^\d]{0,12}",
)
_MAXIMUM = r"[>≥]\s*" + _NUMBER + r"\s*maximum"

_SUM = r"\b(\d{1,12})\s*\+\s*(\d{1,12})\s*>\s*(\d{1,12})\b"
_OUTPUT = (
    r"supports at most[^\d]{0,12}",
    r"max(?:imum)?[_ ](?:completion_|output_|output |completion )?tokens?"
    r"[^\d]{0,4}\d+\s*>\s*",
    r"max_(?:completion_|output_)?tokens[^.]{0,60}?"
    r"(?:less than or equal to|at most|<=|maximum(?: value)?(?: is| of)?|cannot exceed|up to)"
    r"[^\d]{0,12}",
    r"valid range of max_tokens is \[\d+,\s*",
    r"available (?:output )?tokens?[^\d]{0,12}",
    r"maximum (?:number of )?(?:output|completion) tokens[^\d]{0,24}",
)


def window_in(text: str) -> int | None:
    """The context window in an overflow error."""
    if found := re.search(_SUM, text):
        return int(found[3])
    if found := re.search(_MAXIMUM, text, re.IGNORECASE):
        return _number(found)
    return _first(_WINDOW, text, least=256)


def output_limit_in(text: str) -> int | None:
    """The maximum output in an error about a too large `max_tokens`."""
    found = re.search(_SUM, text)
    if found and int(found[3]) > int(found[1]):
        return int(found[3]) - int(found[1])
    return _first(_OUTPUT, text, least=1)


def _first(patterns: tuple[str, ...], text: str, *, least: int) -> int | None:
    for pattern in patterns:
        found = re.search(pattern + _NUMBER, text, re.IGNORECASE)
        if found and (number := _number(found)) >= least:
            return number
    return None


def _number(found: re.Match[str]) -> int:
    digits, thousands = found[1], found[2]
    if not thousands:
        return int(re.sub(r"[,_.]", "", digits))
    whole, _, rest = re.sub(r"[,_]", "", digits).partition(".")
    return int(float(f"{whole}.{rest.partition('.')[0] or 0}") * 1000)
