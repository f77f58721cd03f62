"""What a caller may choose about a search: its engine, and how much it may find and take."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

EngineName = Literal["ripgrep", "grep", "python"]


class SearchLimits(Value):
    """A search that reaches one of these stops there and says that it was cut."""

    matches: int = 5_000
    files: int = 20_000
    candidates: int = 200_000
    seconds: float = 30.0
    line_bytes: int = 4_000
