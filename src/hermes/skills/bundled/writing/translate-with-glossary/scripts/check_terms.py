"""Holds a translation against its source, line by line: terms, numbers, and what was left out.

python3 check_terms.py SOURCE TARGET GLOSSARY.csv     columns source and target; `a|b` allows two
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

NUMBER = re.compile(r"\d+(?:[.,\u202f\u00a0' ]\d+)*")


def paragraphs(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8-sig")
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", text) if each.strip()]


def glossary(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return [(row["source"], tuple(row["target"].split("|"))) for row in rows if row["source"]]


def numbers(text: str) -> Counter[str]:
    """Count numbers by their digits alone: languages differ in the marks between them."""
    return Counter(re.sub(r"\D", "", each) for each in NUMBER.findall(text))


def has(text: str, term: str) -> bool:
    """Return whether the text has the term at the beginning of a word; its end may be inflected."""
    return re.search(rf"(?<!\w){re.escape(term)}", text, re.IGNORECASE) is not None


def problems(source: str, target: str, terms: list[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    for term, allowed in terms:
        if has(source, term) and not any(has(target, each) for each in allowed):
            yield f"{term!r} without {' or '.join(map(repr, allowed))}"
    before, after = numbers(source), numbers(target)
    if before != after:
        lost, new = (
            " ".join(sorted((a - b).elements())) for a, b in ((before, after), (after, before))
        )
        yield f"numbers differ (lost: {lost or '-'}; new: {new or '-'})"
    if source == target and len(source.split()) > 3:
        yield "is not translated"
    elif len(source) > 60 and not 0.5 < len(target) / len(source) < 2:
        yield f"has {len(target)} characters for {len(source)}"


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        sys.exit(__doc__)
    source, target = paragraphs(Path(arguments[0])), paragraphs(Path(arguments[1]))
    terms = glossary(Path(arguments[2]))
    count = 0
    for number, (before, after) in enumerate(zip(source, target, strict=False), 1):
        for problem in problems(before, after, terms):
            sys.stdout.write(f"paragraph {number}: {problem}\n")
            count += 1
    if len(source) != len(target):
        sys.stdout.write(f"{len(source)} paragraphs became {len(target)}\n")
        count += 1
    sys.stdout.write(f"{count} problems in {len(target)} paragraphs\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
