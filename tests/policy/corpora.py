"""The corpora of commands: one in each line, `⏎` for a new line, `<U+200B>` for a hidden sign."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.codec.values import Value

FOLDER = Path(__file__).parent / "corpus"


class Sample(Value):
    category: str
    script: str


def load(name: str) -> list[Sample]:
    """The commands of a file under their headings."""
    category, found = "", []
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            category = line.removeprefix("## ")
        elif line:
            text = re.sub(r"<U\+([0-9A-F]{4})>", lambda code: chr(int(code[1], 16)), line)
            found.append(Sample(category=category, script=text.replace("⏎", "\n")))
    return found
