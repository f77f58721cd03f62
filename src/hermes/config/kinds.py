"""Types shared by several settings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"]
