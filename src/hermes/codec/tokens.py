"""Estimates token counts without a tokenizer."""

from __future__ import annotations

CHARS_PER_TOKEN = 4
IMAGE_TOKENS = 1_500
# Characters outside ASCII mostly are words of their own, or parts of one in two bytes.
_WIDE_BYTES_PER_TOKEN = 2.5


def estimate_tokens(text: str) -> int:
    if text.isascii():
        return tokens_of_size(len(text))
    wide = len(text.encode("utf-8", "surrogatepass")) - len(text)
    return int(len(text) / CHARS_PER_TOKEN + wide / _WIDE_BYTES_PER_TOKEN) + 1


def tokens_of_size(size: int) -> int:
    """Estimate the tokens from the length of a text in ASCII characters or encoded bytes."""
    return -(-size // CHARS_PER_TOKEN)
