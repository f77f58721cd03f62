"""Formats text, numbers, paths and turn endings for people."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path
from typing import assert_never

from hermes.commands.language import ENGLISH, Translator
from hermes.core.events import TurnEnded

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def sanitize(text: str) -> str:
    """Make prose safe to show: keep line breaks, expand tabs, escape other control characters."""

    def sign(found: re.Match[str]) -> str:
        code = ord(found[0])
        return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else ""

    return _CONTROLS.sub(sign, text.replace("\r\n", "\n").expandtabs(4))


def escape_invisible(text: str) -> str:
    """Escape every invisible character, for approvals."""

    def escape(letter: str) -> str:
        # Variation selectors and combining marks are printable, formatting characters are not.
        if letter in "\n " or (letter.isprintable() and unicodedata.category(letter) != "Cf"):
            return letter
        code = ord(letter)
        return "\\t" if letter == "\t" else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return "".join(map(escape, text))


def one_line(text: str, most: int = 0) -> str:
    """The text on one line, cut to `most` characters if given."""
    plain = " ".join(sanitize(text).split())
    return plain if not most or len(plain) <= most else plain[: most - 1] + "…"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """A count and its noun: "1 file", "2 files"; `nouns` is an irregular plural."""
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"


def format_bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count:,} bytes"


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


def format_age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def format_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def format_money(dollars: float) -> str:
    """Small amounts keep more digits."""
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"


def short_path(path: str, root: str = "") -> str:
    """The path relative to `root` or the home folder if it is inside one of them."""
    if root and path == root:
        return "."
    if root and path.startswith(root.rstrip("/") + "/"):
        return path[len(root.rstrip("/")) + 1 :]
    home = str(Path.home())
    inside = path == home or path.startswith(home + "/")
    return "~" + path[len(home) :] if inside and home != "/" else path


# Unusual ends of an answer, by their details.
_UNUSUAL = {
    "text_response(length)": "The answer was cut at the length limit; say “go on” for the rest.",
    "text_response(filtered)": "The provider withheld part of the answer.",
    "text_response(cut)": "The connection broke off during the answer; say “go on” for the rest.",
}


def explain_ending(ended: TurnEnded, *, answered: bool, say: Translator = ENGLISH) -> str:
    """Empty when the turn ended normally. `answered` means that its last reply has text."""
    match ended.reason:
        case "done" if ended.detail in _UNUSUAL:
            return say(_UNUSUAL[ended.detail])
        case "done":
            return "" if answered else say("The model gave an empty answer.")
        case "interrupted":
            return say("Interrupted.")
        case "paused":
            cap = "Paused at a spending cap."
            return say("Paused: {why}", why=ended.error) if ended.error else say(cap)
        case "failed" | "crashed":
            return ended.error or say("The turn failed ({why}).", why=ended.detail)
        case "budget":
            used = ended.detail.rpartition("(")[2].rstrip(")").partition("/")[0]
            template = "Stopped after {used} model calls (agent.max_turns); say “go on” for more."
            return say(template, used=used)
        case "partial":
            return say("Stopped: the model kept requesting invalid tool calls.")
        case "guardrail":
            return say("Stopped: the model repeated itself ({why}).", why=ended.detail)
        case _:
            assert_never(ended.reason)


def is_error(ended: TurnEnded) -> bool:
    """Whether the turn failed, rather than stopped."""
    return ended.reason in ("failed", "crashed")
