"""The output of jobs: files, the marker for silence, and the text that is delivered."""

from __future__ import annotations

import re
import time
from pathlib import Path

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.values import JsonObject, Value
from hermes.cron.schedule import format_time

SILENT = "[SILENT]"
_SILENT_ANSWERS = ("SILENT", "NO_REPLY", "NO REPLY")
_RESPONSE = "\n## Response\n"
CONTEXT_BYTES = 20_000
ERROR_CHARS = 300


class RunOutput(Value):
    """The result of one run. `silent`: it succeeded and has nothing to say."""

    status: str
    text: str = ""
    error: str = ""
    prompt: str = ""
    model: str = ""
    session_id: str = ""
    seconds: float = 0.0


def is_silent(text: str) -> bool:
    """Whether an answer asks not to be delivered: the marker alone in the first or last line, or a
    whole answer that means the same. A marker inside of a sentence is text."""
    lines = [_plain(line) for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return True
    if SILENT in (lines[0], lines[-1]):
        return True
    return len(lines) == 1 and lines[0] in _SILENT_ANSWERS


def _plain(line: str) -> str:
    return line.strip().strip("*_`\"' .").strip().upper()


def stamp(due_at: float) -> str:
    """A due time in names of files and sessions. In UTC: local times repeat."""
    return time.strftime("%Y%m%d_%H%M%S", time.gmtime(due_at))


class OutputFiles:
    """The output folder of a home: one file per run, named after its due time."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        self._folder = folder
        self._keep = keep

    def save(self, job: JsonObject, due_at: float, output: RunOutput, zone: str) -> Path:
        facts = (
            f"job: {job['id']}",
            f"run: {format_time(due_at, zone)}",
            f"status: {output.status}",
            f"duration: {output.seconds:.0f}s",
            f"model: {output.model or '-'}",
            f"session: {output.session_id or '-'}",
        )
        text = "\n".join((output.text, f"Error: {output.error}" if output.error else "")).strip()
        page = f"# Cron job: {job.get('name')}\n- {'   '.join(facts)}\n## Prompt\n{output.prompt}"
        path = self._folder / str(job["id"]) / f"{stamp(due_at)}.md"
        replace_file(path, f"{page}{_RESPONSE}{text}\n".encode(), mode=PRIVATE, durable=False)
        for old in sorted(path.parent.glob("*.md"))[: -self._keep]:
            old.unlink(missing_ok=True)
        return path

    def newest_response(self, job_id: str) -> str:
        """The newest response that was neither silent nor an error; "" if there is none."""
        folder = self._folder / job_id
        for path in sorted(folder.glob("*.md"), reverse=True) if folder.is_dir() else ():
            page = path.read_text("utf-8", "replace")
            if re.search(r"^- job: .*\bstatus: ok\b", page, re.MULTILINE):
                response = page.partition(_RESPONSE)[2].strip().encode()[:CONTEXT_BYTES]
                return response.decode("utf-8", "ignore")
        return ""


def success_message(job: JsonObject, text: str, *, wrap: bool, is_mirrored: bool) -> str:
    """What a chat gets. The footer is left out where the agent can see replies."""
    if not wrap:
        return text
    footer = "The agent does not see replies to this message."
    parts = (f"{job.get('name')} ({job['id']})", "---", text, "" if is_mirrored else f"_{footer}_")
    return "\n".join(parts).strip()


def failure_message(job: JsonObject, error: str, *, nudge: int, retry_minutes: float) -> str:
    """What a chat gets about a failed run. `nudge` is the number of failures after which pausing is
    suggested."""
    attempt, streak = int(job.get("attempt") or 0) + 1, int(job.get("failure_streak") or 0)
    short = error if len(error) <= ERROR_CHARS else f"{error[:ERROR_CHARS]}…"
    again = f"; the next one is in {retry_minutes:.0f} min" if retry_minutes else ""
    lines = [
        f"{job.get('name')} ({job['id']}) failed",
        "---",
        short,
        f"Attempt {attempt}{again}. `hermes cron runs {job['id']}` shows the log.",
    ]
    if nudge and streak >= nudge and (job.get("schedule") or {}).get("kind") != "once":
        lines.append(
            f"It has failed {streak} times in a row: `hermes cron pause {job['id']}` pauses it, "
            f"`hermes cron remove {job['id']}` removes it."
        )
    return "\n".join(lines)
