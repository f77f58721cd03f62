"""Turn limits and spending caps from the current settings."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.codec.json import convert, plain
from hermes.config.load import Config, load
from hermes.config.provider_settings import BudgetSettings
from hermes.config.settings import Settings
from hermes.core.caps import Caps
from hermes.core.events import SessionOpened
from hermes.core.guardrails import Guardrails, limit_file_reads
from hermes.core.metering import CHAT, Budgeting
from hermes.core.session_deps import TurnLimits
from hermes.core.tools import ToolSettings


def limits_of(settings: Settings, window: int) -> TurnLimits:
    """Return the limits for a model with this context window."""
    output = settings.tool_output
    tools = ToolSettings(
        max_bytes=output.max_bytes,
        max_lines=output.max_lines,
        max_line_length=output.max_line_length,
        file_read_max_chars=settings.file_read_max_chars,
        terminal_timeout=settings.terminal.timeout,
        terminal_max_timeout=settings.terminal.max_foreground_timeout,
        clarify_timeout=settings.agent.clarify_timeout,
    )
    return TurnLimits(
        max_steps=settings.agent.max_turns,
        tools_seconds=settings.agent.tool_timeout,
        window=window,
        guardrails=convert(Guardrails, plain(settings.tool_loop_guardrails)),
        settings=limit_file_reads(tools, window),
    )


CRON = "cron"
SUB_SESSION = "sub-session"


class SpendingLimits:
    """Reloads the settings file when it changes, so that a raised cap takes effect on waiting
    work."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        self._home = config.home
        self._env = env
        self._stamp = self._file_stamp()
        self._use(config.settings.budget)

    @property
    def caps(self) -> Caps:
        self._refresh()
        return self._caps

    def of(self, opened: SessionOpened) -> Budgeting:
        self._refresh()
        is_part = bool(opened.parent) and not opened.parent_n
        cause = CRON if opened.source == CRON else SUB_SESSION if is_part else CHAT
        return Budgeting(caps=self._caps, cause=cause, ask_seconds=self._settings.ask_seconds)

    def _refresh(self) -> None:
        stamp = self._file_stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            self._use(load(self._home, env=self._env).settings.budget)

    def _use(self, settings: BudgetSettings) -> None:
        self._settings = settings
        self._caps = convert(Caps, plain(settings))

    def _file_stamp(self) -> tuple[int, int]:
        try:
            found = self._home.config.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)
