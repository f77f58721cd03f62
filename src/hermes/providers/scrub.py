"""Makes text encodable: replaces lone surrogates, and escapes to ASCII where required."""

from __future__ import annotations

import re

from hermes.codec.values import JsonValue

# An escaped control character; after an even number of backslashes.
_ESCAPED_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)\\u00[01][0-9a-f]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def clean_text(text: str) -> str:
    """The text itself if it can be encoded. Otherwise surrogate pairs are joined and lone halves
    become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: JsonValue) -> JsonValue:
    """The same object if nothing had to be replaced."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        items = [clean_json(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = [(clean_text(key), clean_json(item)) for key, item in value.items()]
        same = all(
            a is key and b is item for (a, b), (key, item) in zip(pairs, value.items(), strict=True)
        )
        return value if same else dict(pairs)
    return value


def ascii_json(encoded: bytes) -> bytes:
    """The same JSON in ASCII, with U+FFFD for control characters in strings: dropping them could
    leave a string empty."""
    text = _ESCAPED_CONTROL.sub(r"\1\\ufffd", encoded.decode("utf-8"))
    return _BEYOND_ASCII.sub(_escape, text).encode("ascii")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
