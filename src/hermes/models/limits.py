"""Turn limits and spending caps from the current settings."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.codec.json import convert, plain
from hermes.config.load import Config, load
from hermes.config.settings import Settings
from hermes.core.caps import SCOPES, Cap, Caps
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
    """Reloads the settings file when it changes, so that a changed cap takes effect on running
    work. A file that is damaged, emptied or gone never lifts a cap: a running process keeps the
    last valid caps, and a cap that is missing in the file stays until it is set to null."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        self._home = config.home
        self._env = env
        self._stamp = self._file_stamp()
        self._settings = config.settings.budget
        self._caps = convert(Caps, plain(self._settings))

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
        if stamp == self._stamp:
            return
        self._stamp = stamp
        config = load(self._home, env=self._env)
        if config.is_valid:
            self._settings = config.settings.budget
            self._caps = self._changed_caps(config)

    def _changed_caps(self, config: Config) -> Caps:
        """Return the caps of the file, and the current ones that it does not mention."""
        found = {}
        for scope in SCOPES:
            amounts = {}
            for unit in ("usd", "tokens"):
                set_to = config.explain(f"budget.{scope}.{unit}")
                is_missing = set_to.source.kind == "default"
                amounts[unit] = getattr(self._caps.of(scope), unit) if is_missing else set_to.value
            found[scope] = Cap(**amounts)
        return Caps(**found)

    def _file_stamp(self) -> tuple[int, int, int]:
        try:
            found = self._home.config.stat()
        except OSError:
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_size, found.st_ino)
