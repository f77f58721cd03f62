"""Settings of scheduled jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.schema import Count, Positive


class CronSettings(Value):
    """Scheduled jobs."""

    tick_seconds: Annotated[
        Positive, "Longest pause of the scheduler; it wakes for due times and changed jobs."
    ] = 60
    max_parallel_jobs: Annotated[Positive, "Jobs that one scheduler runs at the same time."] = 4
    missed: Annotated[
        Literal["skip", "once", "all"],
        "Runs that were missed by more than half a period (2 minutes to 2 hours): skip them, make "
        "up for one, or for all.",
    ] = "skip"
    oneshot_max_lateness: Annotated[Count, "Seconds that a run at a fixed time may be late."] = (
        86_400
    )
    min_interval_seconds: Annotated[Positive, "Shortest time between two runs of a job."] = 60
    wrap_response: Annotated[bool, "Deliver output with the name of its job."] = True
    mirror_delivery: Annotated[bool, "Add delivered output to the session of the chat."] = False
    output_retention: Annotated[Positive, "Output files to keep for each job."] = 50
    script_timeout_seconds: Annotated[Positive, "Timeout of a script, in seconds."] = 3_600
    inactivity_seconds: Annotated[
        Count, "Seconds without activity until a run is stopped; 0 for never."
    ] = 600
    max_turns: Annotated[Count, "Maximum model calls of a run; 0 uses `agent.max_turns`."] = 0
    skip_memory: Annotated[bool, "Runs read the memory but cannot change it."] = True
    allow_agent_scheduling: Annotated[bool, "Runs may create and change jobs."] = False
    failure_nudge_threshold: Annotated[
        Count, "Consecutive failures after which a notice suggests to pause the job; 0 for never."
    ] = 3
    retry_unreachable: Annotated[
        bool, "Try again after 5, 15 and 30 minutes if the model cannot be reached."
    ] = True
    model: Annotated[str, "Model of jobs; empty uses the default model."] = ""
    model_provider: Annotated[str, "Provider of that model."] = ""
