"""The messages that every request begins with, from a file of the person's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import Value
from hermes.config.home import Home
from hermes.config.settings import Settings
from hermes.core.messages import AssistantMessage, Message, Text, user_says

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext


class PrefillLine(Value):
    role: Literal["user", "assistant"]
    content: str


def prefill_file(settings: Settings, home: Home) -> Path | None:
    """Where they are, if anywhere."""
    if not settings.prefill_messages_file:
        return None
    return home.root / Path(settings.prefill_messages_file).expanduser()


def prefill_messages(run: RunContext) -> tuple[Message, ...]:
    """A file that cannot be used is told once, and left out."""
    if (file := prefill_file(run.settings, run.home)) is None:
        return ()
    try:
        lines = decode(tuple[PrefillLine, ...], file.read_bytes())
    except (OSError, DecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        words = f"prefill_messages_file: {file} is left out ({why})."
        if words not in run.notices:
            run.notices.append(words)
        return ()
    return tuple(_message(line) for line in lines)


def _message(line: PrefillLine) -> Message:
    if line.role == "user":
        return user_says(line.content)
    return AssistantMessage(parts=(Text(text=line.content),))
