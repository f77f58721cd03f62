"""The options of a search: its engine and its limits."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

EngineName = Literal["ripgrep", "grep", "python"]


class SearchLimits(Value):
    """A search that reaches a limit stops there and is marked as cut."""

    matches: int = 5_000
    files: int = 20_000
    candidates: int = 200_000
    seconds: float = 30.0
    line_bytes: int = 4_000
