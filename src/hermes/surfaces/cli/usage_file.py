"""`--usage-file`: the usage of one run and how it ended, written even on failure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.endings import explain_ending
from hermes.core.errors import UsageError
from hermes.core.events import (
    CallSettled,
    ModelSwitched,
    Record,
    ReplyAdded,
    SessionOpened,
    TurnEnded,
)
from hermes.core.messages import Usage


class UsageFile:
    """Adds up the usage of a run. Raises UsageError at once if the file is not writable, before
    anything is spent."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._path = Path(options["usage_file"]) if options["usage_file"] else None
        self._session_id = ""
        self._model = options["model"] or ""
        self._provider = options["provider"] or ""
        self._usage = Usage()
        self._ended: TurnEnded | None = None
        if self._path is not None:
            _check(self._path)

    def add(self, record: Record) -> None:
        self._session_id = record.session_id
        match record.event:
            case SessionOpened() | ModelSwitched() as event:
                self._model, self._provider = event.model, event.provider
            case ReplyAdded() as event:
                self._model, self._provider = event.model, event.provider
            case CallSettled(usage=usage):
                # Includes assumed usage, which may have been charged.
                self._usage += usage
            case TurnEnded() as event:
                self._ended = event
            case _:
                pass

    def write(self, error: str) -> None:
        """`error` is what prevented the turn from ending, if anything."""
        if self._path is not None:
            self._path.write_bytes(encode(self._facts(error)) + b"\n")

    def _facts(self, error: str) -> JsonObject:
        usage, ended = self._usage, self._ended
        return {
            "session_id": self._session_id,
            "model": self._model,
            "provider": self._provider,
            "api_calls": usage.requests,
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": usage.reasoning,
            "estimated_cost_usd": usage.cost,
            "completed": not error and ended is not None and ended.reason == "done",
            "error": error or _why(ended),
        }


def _why(ended: TurnEnded | None) -> str:
    if ended is None:
        return "The turn did not end."
    return "" if ended.reason == "done" else explain_ending(ended, answered=True)


def _check(path: Path) -> None:
    try:
        path.open("ab").close()
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        raise UsageError(
            f"{path} cannot be written ({why}); name another file with --usage-file."
        ) from error
