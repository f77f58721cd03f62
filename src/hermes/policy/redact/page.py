"""A text in the forms in which it can be searched fast, with the same places in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Page:
    """`data` has one byte for each character, whatever the character: places in it are places in
    the text. `low` is the same in small letters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("latin-1", "replace")
        self.low = self.data.lower()

    def places(self, word: bytes, *, exact: bool = False) -> Iterable[int]:
        """Where a word begins, in small letters unless `exact`. Several searches for words are
        much faster than one expression that knows them all."""
        data = self.data if exact else self.low
        at = data.find(word)
        # Most words are nowhere in a text.
        return _places(data, word, at) if at >= 0 else ()


def _places(data: bytes, word: bytes, at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = data.find(word, at + 1)
