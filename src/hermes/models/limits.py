"""What a turn may take: by the settings, and by how much the model's window holds."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.json import convert, plain
from hermes.config.settings import Settings
from hermes.core.guardrails import Guardrails, limit_file_reads
from hermes.core.ports import Meter, Provider
from hermes.core.tools import ToolSettings
from hermes.core.turn import TurnLimits

# Connects to a model with a meter and a service tier.
TieredConnect = Callable[[str, str, Meter, str | None], tuple[Provider, TurnLimits]]


def limits_of(settings: Settings, window: int) -> TurnLimits:
    """For a model with this window."""
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
