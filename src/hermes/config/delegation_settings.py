"""Settings of delegated tasks, background sessions and goals."""

from __future__ import annotations

from typing import Annotated

from hermes.codec.values import Value
from hermes.config.schema import Count, Effort, NonNegative, Positive


class DelegationSettings(Value):
    """Child sessions that work on parts of a task."""

    model: Annotated[str, "Model of child sessions; empty uses that of the parent."] = ""
    provider: Annotated[str, "Provider of that model; `providers` may define it."] = ""
    reasoning_effort: Annotated[Effort, "Reasoning effort of child sessions."] = ""
    max_iterations: Annotated[Positive, "Maximum model calls of a child session."] = 50
    max_concurrent_children: Annotated[Positive, "Maximum tasks in one call."] = 3
    max_spawn_depth: Annotated[
        Count, "Levels of child sessions; with 1, they cannot delegate further."
    ] = 1
    orchestrator_enabled: Annotated[bool, "Child sessions may get the role `orchestrator`."] = True
    child_timeout_seconds: Annotated[
        NonNegative, "Timeout of a child session, at least 30; 0 for none."
    ] = 0
    idle_seconds: Annotated[
        Positive, "Seconds without activity between tool calls until a child session is stopped."
    ] = 450
    idle_tool_seconds: Annotated[
        Positive, "Seconds without activity inside a tool call until a child session is stopped."
    ] = 1_200
    max_summary_chars: Annotated[
        Positive, "Maximum characters of a result; the rest goes to a file."
    ] = 24_000
    inherit_mcp_toolsets: Annotated[
        bool, "Child sessions can find the tools of MCP servers and plugins."
    ] = True
    subagent_auto_approve: Annotated[
        bool, "Approve what child sessions ask if nobody can answer, instead of denying it."
    ] = False


class BackgroundSettings(Value):
    """Child sessions that run while the conversation goes on; others wait for a free place."""

    max_per_session: Annotated[Positive, "Background tasks of one session."] = 5
    max_per_process: Annotated[Positive, "Background tasks of one process."] = 20


class WorkRetentionSettings(Value):
    """How long the sessions, logs and long outputs of finished work are kept. The first chat of a
    day removes the oldest."""

    plans_days: Annotated[Positive, "Days until long results of plan steps are removed."] = 30
    delegation_days: Annotated[
        Positive, "Days until finished child sessions, their logs and long answers are removed."
    ] = 7
    exec_days: Annotated[Positive, "Days until long outputs of scripts are removed."] = 3
    max_mb: Annotated[Positive, "Maximum megabytes of these files; the oldest are removed."] = 500


class GoalSettings(Value):
    """Goals that a session pursues over several turns (`/goal`)."""

    max_turns: Annotated[Positive, "Turns until a goal is given up."] = 20
    max_usd: Annotated[NonNegative, "Dollars until a goal is given up; 0 for no limit."] = 0
