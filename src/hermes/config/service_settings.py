"""The settings of providers that plugins bring: who searches the web, who speaks, who listens."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Seconds

SoundFormat = Literal["", "wav", "mp3", "ogg", "flac"]


class WebSettings(Value):
    """Who searches the web and reads pages. Nothing is offered where nobody can."""

    provider: Annotated[str, "Who is asked; empty takes the first that can."] = ""


class TtsSettings(Value):
    """Who speaks."""

    provider: Annotated[str, "Who speaks; empty takes the first that can."] = ""
    voice: Annotated[str, "The voice; empty is the provider's own."] = ""
    model: Annotated[str, "The model; empty is the provider's own."] = ""
    speed: Annotated[Seconds, "How fast, 1 is as usual."] = 1.0
    format: Annotated[SoundFormat, "The kind of file; empty is the provider's own."] = ""


class SttSettings(Value):
    """Who listens."""

    provider: Annotated[str, "Who listens; empty takes the first that can."] = ""
    language: Annotated[str, "The language that is spoken, such as `en`; empty to find out."] = ""
    model: Annotated[str, "The model; empty is the provider's own."] = ""
