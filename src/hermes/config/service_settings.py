"""Settings of web search, text to speech and speech to text."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Seconds

SoundFormat = Literal["", "wav", "mp3", "ogg", "flac"]


class WebSettings(Value):
    """Web search and page reading. The tools are offered only if a provider is configured."""

    provider: Annotated[str, "Provider; empty uses the first available."] = ""


class TtsSettings(Value):
    """Text to speech."""

    provider: Annotated[str, "Provider; empty uses the first available."] = ""
    voice: Annotated[str, "Voice; empty uses the provider's default."] = ""
    model: Annotated[str, "Model; empty uses the provider's default."] = ""
    speed: Annotated[Seconds, "Speaking rate; 1 is normal."] = 1.0
    format: Annotated[SoundFormat, "File format; empty uses the provider's default."] = ""


class SttSettings(Value):
    """Speech to text."""

    provider: Annotated[str, "Provider; empty uses the first available."] = ""
    language: Annotated[str, "Spoken language, such as `en`; empty detects it."] = ""
    model: Annotated[str, "Model; empty uses the provider's default."] = ""
