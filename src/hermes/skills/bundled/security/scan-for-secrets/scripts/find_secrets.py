"""Finds keys and passwords in files or in a stream of text, and shows where without showing them.

python3 find_secrets.py [FOLDER or FILE]...      exit code 1 when something was found
git log -p --all | python3 find_secrets.py -     the same for what was ever committed
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

SKIPPED = {".git", "node_modules", ".venv", "venv", "__pycache__", "dist", "build", ".tox"}
LARGEST = 2_000_000
SURPRISE = 3.5

KINDS = {
    "private key": re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    "AWS key": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,})"),
    "GitLab token": re.compile(r"\bglpat-[\w-]{20,}"),
    "Slack token": re.compile(r"\bxox[abeoprs]-[\w-]{10,}"),
    "model key": re.compile(r"\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{20,}"),
    "Google key": re.compile(r"\bAIza[\w-]{35}"),
    "Stripe key": re.compile(r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
    "signed token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "password in address": re.compile(r"\b[a-z][a-z0-9+]*://[^\s:/@]+:([^\s:/@]{4,})@"),
}
NAMED = re.compile(
    r"(?i)(?:passw(?:or)?d|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
    r"[\w-]*[\"']?\s*[:=]>?\s*[\"']?([^\s\"',;]{8,})"
)
# What stands for a value that is somewhere else, or for none.
STAND_IN = re.compile(
    r"(?i)^[<{$%(*\[]|^(.)\1+$|example|change.?me|placeholder|your[_-]|dummy|redacted|xxxx|^none$"
    r"|^(?:os|process|config|settings|self|env)\b|[(\[]"
)


def surprise(word: str) -> float:
    """Return bits per character: about 4 and more for random ones, 3 for words."""
    counts = Counter(word)
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())


def find_in_line(line: str) -> Iterator[tuple[str, str]]:
    """Yield kind and secret, each part of the line once."""
    known = False
    for kind, pattern in KINDS.items():
        for match in pattern.finditer(line):
            known = True
            yield kind, match[match.lastindex or 0]
    for match in () if known else NAMED.finditer(line):
        word = match[1]
        if not STAND_IN.search(word) and surprise(word) >= SURPRISE and re.search(r"\d", word):
            yield "named secret", word


def mask(word: str) -> str:
    """Shorten a secret: enough to recognise it, too little to use it."""
    return f"{word[:4]}…({len(word)} characters)"


def files(places: Iterable[Path]) -> Iterator[Path]:
    for path in places:
        if path.is_file():
            yield path
        for where, folders, names in os.walk(path):
            folders[:] = sorted(set(folders) - SKIPPED)
            yield from (Path(where, name) for name in sorted(names))


def lines(path: Path) -> list[str]:
    """Return the lines of a file; none if it is large, binary or unreadable."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return []
        data = path.read_bytes()
    except OSError:
        return []
    return [] if b"\0" in data[:8000] else data.decode("utf-8", "replace").splitlines()


def report(where: str, text: Iterable[str]) -> int:
    count = 0
    for number, line in enumerate(text, 1):
        for kind, word in find_in_line(line):
            sys.stdout.write(f"{where}:{number}: {kind}: {mask(word)}\n")
            count += 1
    return count


def main(arguments: list[str]) -> int:
    if arguments == ["-"]:
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        count = report("input", sys.stdin)
    else:
        places = [Path(each) for each in arguments or ["."]]
        count = sum(report(str(path), lines(path)) for path in files(places))
    sys.stdout.write(f"{count} found\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
