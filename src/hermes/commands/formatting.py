"""Formats text, numbers, paths and turn endings for people."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import assert_never

from hermes.commands.language import ENGLISH, Translator
from hermes.core.events import TurnEnded

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def sanitize(text: str) -> str:
    """For prose: keeps line breaks, expands tabs, escapes other control characters."""
    plain = text.replace("\r\n", "\n").expandtabs(4)
    return _CONTROLS.sub(_sign, plain)


def escape_invisible(text: str) -> str:
    """For approvals: escapes every invisible character."""
    return "".join(letter if _shows(letter) else _escape(letter) for letter in text)


def one_line(text: str, most: int = 0) -> str:
    """The text on one line, cut to `most` characters if given."""
    plain = " ".join(sanitize(text).split())
    return plain if not most or len(plain) <= most else plain[: most - 1] + "…"


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else ""


def _shows(letter: str) -> bool:
    if letter in "\n ":
        return True
    # Variation selectors and combining marks are printable, formatting characters are not.
    return letter.isprintable() and unicodedata.category(letter) != "Cf"


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter == "\t":
        return "\\t"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def format_count(count: int) -> str:
    if count < 1_000:
        return str(count)
    size, unit = (1_000, "K") if count < 999_950 else (1_000_000, "M")
    return f"{count / size:.1f}".removesuffix(".0") + unit


def format_elapsed(seconds: float) -> str:
    """An elapsed time in whole seconds: "7s", "2m 05s" or "1h 03m"."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m"


def format_duration(seconds: float) -> str:
    """A duration, with a decimal for short ones."""
    return f"{seconds:.1f}s" if seconds < 10 else format_elapsed(seconds)


def format_money(dollars: float) -> str:
    """Small amounts keep more digits."""
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"


def short_path(path: str, root: str = "") -> str:
    """Relative to `root`, else to the home folder, if the path is inside."""
    if root and path == root:
        return "."
    if root and path.startswith(root.rstrip("/") + "/"):
        return path[len(root.rstrip("/")) + 1 :]
    home = str(Path.home())
    inside = path == home or path.startswith(home + "/")
    return "~" + path[len(home) :] if inside and home != "/" else path


def explain_ending(ended: TurnEnded, *, answered: bool, say: Translator = ENGLISH) -> str:
    """Empty when the turn ended normally. `answered` means that its last reply has text."""
    match ended.reason:
        case "done":
            return _unusual(ended.detail, answered, say)
        case "interrupted":
            return say("Interrupted.")
        case "paused":
            cap = "Paused at a spending cap."
            return say("Paused: {why}", why=ended.error) if ended.error else say(cap)
        case "failed" | "crashed":
            return ended.error or say("The turn failed ({why}).", why=ended.detail)
        case "budget":
            used = ended.detail.rpartition("(")[2].rstrip(")").partition("/")[0]
            words = "Stopped after {used} model calls (agent.max_turns); say “go on” for more."
            return say(words, used=used)
        case "partial":
            return say("Stopped: the model kept making calls that cannot be run.")
        case "guardrail":
            return say("Stopped, because it went in circles: {why}.", why=ended.detail)
        case _:
            assert_never(ended.reason)


def is_error(ended: TurnEnded) -> bool:
    """Whether the turn failed, rather than stopped."""
    return ended.reason in ("failed", "crashed")


def _unusual(detail: str, answered: bool, say: Translator) -> str:
    match detail:
        case "text_response(length)":
            return say("The answer was cut at the length limit; say “go on” for the rest.")
        case "text_response(filtered)":
            return say("The provider held back (a part of) the answer.")
        case "text_response(cut)":
            return say("The answer was cut off on its way; say “go on” for the rest.")
        case _:
            return "" if answered else say("The model gave an empty answer.")
