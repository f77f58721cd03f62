"""Prepares a regular expression for the search engines, which otherwise differ at line ends."""

from __future__ import annotations

import re

from hermes.core.errors import ToolError

# An escape, a character class, or a bare dollar sign.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\$", re.DOTALL)
_POSIX_CLASS = re.compile(r"\[:(\w+):\]")
_POSIX = {
    "alnum": "A-Za-z0-9", "alpha": "A-Za-z", "blank": r" \t", "digit": "0-9", "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z", "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def check_pattern(pattern: str) -> None:
    """Raise ToolError for patterns that can match in no line."""
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The pattern is not valid Unicode.") from error
    if "\n" in pattern or any(token == r"\n" for token in _TOKEN.findall(pattern)):
        raise ToolError(
            f"Invalid regex {pattern!r}: a search looks at single lines, "
            "so the pattern cannot contain a line break."
        )


def match_before_cr(pattern: str) -> str:
    """Let `$` also match before a carriage return, as in files with Windows line ends."""
    return _TOKEN.sub(lambda found: r"(?:\r?$)" if found[0] == "$" else found[0], pattern)


def compile_for_python(pattern: str) -> re.Pattern[str]:
    """Compile for `re`, which has no POSIX classes and another name for the end of text."""

    def translate(found: re.Match[str]) -> str:
        token = found[0]
        if token in ("$", r"\z", r"\Z"):
            return r"(?:\r?\Z)"
        if not token.startswith("["):
            return token
        return _POSIX_CLASS.sub(lambda each: _POSIX.get(each[1], each[0]), token)

    return re.compile(_TOKEN.sub(translate, pattern))
