"""What a turn may take, from the settings and from what the model takes."""

from __future__ import annotations

from hermes.codec.json import convert, plain
from hermes.config.settings import Settings
from hermes.core.guardrails import Guardrails
from hermes.core.tools import ToolSettings
from hermes.core.turn import Limits


def limits_of(settings: Settings, window: int) -> Limits:
    return Limits(
        max_steps=settings.agent.max_turns,
        window=window,
        guardrails=convert(Guardrails, plain(settings.tool_loop_guardrails)),
        settings=ToolSettings(
            max_bytes=settings.tool_output.max_bytes,
            max_lines=settings.tool_output.max_lines,
            max_line_length=settings.tool_output.max_line_length,
            file_read_max_chars=settings.file_read_max_chars,
            terminal_timeout=settings.terminal.timeout,
            terminal_max_timeout=settings.terminal.max_foreground_timeout,
            clarify_timeout=settings.agent.clarify_timeout,
        ),
    )
