"""The message that starts the session of a job: skills, context, script output and task."""

from __future__ import annotations

from hermes.codec.values import JsonObject, Value
from hermes.cron.scripts import ScriptResult

NOTE = (
    "[This is a scheduled run. Your final answer is delivered automatically. If there is nothing "
    "to report, answer exactly [SILENT].]"
)
INTERRUPTED = "The script was interrupted by a crash; its outcome is unknown."
EMPTY = "The script printed nothing."


class PromptParts(Value):
    """What goes into the message of a run. `context` is by title."""

    skills: tuple[str, ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    script: ScriptResult | None = None
    # What others wrote for this run, by source.
    requests: tuple[tuple[str, str], ...] = ()


def build_prompt(job: JsonObject, parts: PromptParts) -> str:
    sections = [NOTE, *parts.skills]
    sections += [f"## Output of {title}\n{text}" for title, text in parts.context]
    sections += [f"## Message of {source}\n{text}" for source, text in parts.requests]
    if parts.script is not None:
        shown = parts.script.output.strip() or EMPTY
        sections.append(f"## Output of the script\n{shown}")
        if parts.script.error:
            sections.append(f"[The script failed: {parts.script.error}]")
    if job.get("prompt"):
        sections.append(f"## Task\n{job['prompt']}")
    return "\n\n".join(sections)


def origin(job: JsonObject, parts: PromptParts) -> str:
    """Where the message comes from: text of scripts and other jobs is untrusted."""
    sources = [f"script:{job.get('script')}"] if parts.script is not None else []
    sources += [f"job:{title}" for title, _ in parts.context]
    sources += [source for source, _ in parts.requests]
    return ", ".join(sources) or "user"
