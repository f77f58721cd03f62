"""Settings of past sessions: what is kept of them, for how long, and how they are searched."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Positive


class RetentionSettings(Value):
    """What becomes of old sessions. Nothing happens to them unless this says so."""

    mode: Annotated[
        Literal["off", "prune", "archive"], "Keep all, delete old ones, or move them to `archive/`."
    ] = "off"
    days: Annotated[Positive, "Age in days from which a session is old."] = 90
    min_interval_hours: Annotated[Positive, "Hours between two sweeps."] = 24


class SessionSettings(Value):
    record: Annotated[
        bool, "Keep the raw bytes of model calls, so that sessions can be replayed."
    ] = False
    retention: RetentionSettings = RetentionSettings()
    write_json_snapshots: Annotated[
        bool, "Also write each session to `sessions/session_ID.json`, after every turn."
    ] = False


class SessionSearchSettings(Value):
    """How the agent looks back."""

    summarize: Annotated[
        bool, "A model recaps what is found unless a call says otherwise; it costs and takes time."
    ] = False
