"""Checks the prompt of a job before it is stored: nobody is present when it runs."""

from __future__ import annotations

import re

from hermes.core.errors import UsageError
from hermes.policy.threat_scan import scan_for_threats

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
# A job that stops the process which runs it, and so all other jobs.
_LIFECYCLE = re.compile(
    r"\bhermes\s+(?:-\S+\s+)*gateway\s+(?:stop|restart|uninstall)\b"
    r"|\bhermes\s+(?:-\S+\s+)*uninstall\b"
    r"|\b(?:systemctl|launchctl|service)\b[^.\n]{0,60}\b(?:stop|restart|kill|disable|unload|"
    r"bootout)\b[^.\n]{0,60}\bhermes"
    r"|\b(?:systemctl|launchctl|service)\b[^.\n]{0,60}\bhermes\S*\s+(?:stop|restart)\b"
    r"|\b(?:pkill|killall|kill)\b[^.\n]{0,60}\bhermes\b"
    r"|\b(?:stop|restart|reboot|kill|shut\s*down|terminate)\s+(?:the\s+|this\s+|your\s+)?"
    r"(?:hermes\s+)?(?:gateway|scheduler)\b",
    re.IGNORECASE,
)


def check_prompt(prompt: str) -> None:
    """Raise UsageError for hidden characters, known attacks, and attempts to stop the scheduler."""
    if _INVISIBLE.search(prompt):
        raise UsageError("The prompt contains invisible characters; remove them.")
    if found := _LIFECYCLE.search(prompt):
        raise UsageError(
            f"A job must not stop or restart Hermes ({found[0]!r}); use `hermes gateway` yourself."
        )
    if finding := scan_for_threats(prompt):
        raise UsageError(f"The prompt looks like an attack ({finding}); rephrase it.")
