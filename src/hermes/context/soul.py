"""SOUL.md: who the assistant is in this home, in the words of its owner."""

from __future__ import annotations

from contextlib import suppress

from hermes.codec.atomic_files import write_new
from hermes.config.home import Home
from hermes.context.project_files import Scan, cut_middle

STARTER = """\
<!-- Who Hermes is for you. What you write below this line takes the place of
the built-in introduction in every new session: a name, a manner, what matters.
As long as there is nothing, the built-in one is used. -->
"""


def write_default_soul(home: Home) -> None:
    """A first SOUL.md for somebody to write in; never over one that is there."""
    # A home that cannot be written does without.
    with suppress(OSError):
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(home.soul, STARTER.encode(), durable=False)


def is_custom(home: Home) -> bool:
    """Whether somebody has put words of their own there."""
    return bool(_words(home))


def read_soul(home: Home, limit: int, scan: Scan) -> str:
    """What the owner wrote, scanned and within a limit; "" where they wrote nothing."""
    text = _words(home)
    return cut_middle(scan(home.soul.name, text), limit, str(home.soul))[0] if text else ""


def _words(home: Home) -> str:
    try:
        text = home.soul.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return text.removeprefix(STARTER.strip()).strip()
