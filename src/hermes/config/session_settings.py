"""Settings of session recording, retention and search."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Positive


class RetentionSettings(Value):
    """Retention of old sessions; by default all are kept."""

    mode: Annotated[
        Literal["off", "prune", "archive"],
        "Keep all sessions, delete old ones, or move them to `archive/`.",
    ] = "off"
    days: Annotated[Positive, "Days after which a session is old."] = 90
    min_interval_hours: Annotated[Positive, "Hours between two clean-ups."] = 24


class SessionSettings(Value):
    record: Annotated[
        bool, "Record the raw bytes of model calls, so that sessions can be replayed."
    ] = False
    retention: RetentionSettings = RetentionSettings()
    write_json_snapshots: Annotated[
        bool, "Also write each session to `sessions/session_ID.json`, after every turn."
    ] = False


class SessionSearchSettings(Value):
    """The session search tool."""

    summarize: Annotated[
        bool, "Summarise results with a model by default; slower, and costs tokens."
    ] = False
