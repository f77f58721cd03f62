"""Checks, shifts, stretches and converts subtitles in SubRip files (.srt).

python3 subtitles.py check FILE
python3 subtitles.py shift IN OUT SECONDS
python3 subtitles.py stretch IN OUT SHOWN=RIGHT SHOWN=RIGHT      times like 00:01:02,500
python3 subtitles.py vtt IN OUT
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TIMES = re.compile(r"(\d+:\d\d:\d\d[,.]\d{1,3})\s*-->\s*(\d+:\d\d:\d\d[,.]\d{1,3})")
LONGEST_LINE = 42
MOST_LINES = 2
FASTEST = 20


class Cue(NamedTuple):
    """A subtitle. Times are in thousandths of a second."""

    begin: int
    end: int
    lines: tuple[str, ...]


def moment(text: str) -> int:
    match = re.fullmatch(r"(\d+):(\d\d):(\d\d)(?:[,.](\d{1,3}))?", text.strip())
    if match is None:
        sys.exit(f"{text!r} is not a time like 00:01:02,500.")
    hours, minutes, seconds, rest = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * 1000 + int((rest or "0").ljust(3, "0"))


def stamp(thousandths: int, mark: str = ",") -> str:
    seconds, rest = divmod(thousandths, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{mark}{rest:03}"


def read(path: Path) -> list[Cue]:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    cues = []
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip()):
        lines = block.split("\n")
        index = next((n for n, line in enumerate(lines[:2]) if TIMES.search(line)), None)
        if index is None:
            sys.exit(f"This block has no times: {lines[0][:60]!r}")
        begin, end = TIMES.search(lines[index]).groups()  # type: ignore[union-attr]
        cues.append(Cue(moment(begin), moment(end), tuple(lines[index + 1 :])))
    return cues


def render(cues: list[Cue]) -> str:
    blocks = (
        f"{number}\n{stamp(cue.begin)} --> {stamp(cue.end)}\n" + "\n".join(cue.lines) + "\n"
        for number, cue in enumerate(sorted(cues), 1)
    )
    return "\n".join(blocks)


def web(cues: list[Cue]) -> str:
    blocks = (
        f"{stamp(cue.begin, '.')} --> {stamp(cue.end, '.')}\n" + "\n".join(cue.lines) + "\n"
        for cue in sorted(cues)
    )
    return "WEBVTT\n\n" + "\n".join(blocks)


def shift(cues: list[Cue], factor: float, offset: float) -> list[Cue]:
    """Shift and scale all times. What would begin before the film is cut off or dropped."""
    shifted = []
    for cue in cues:
        begin, end = (round(each * factor + offset) for each in (cue.begin, cue.end))
        if end > 0:
            shifted.append(Cue(max(begin, 0), end, cue.lines))
    return shifted


def line_through(points: list[str]) -> tuple[float, float]:
    """Return factor and offset by which the shown times become the right ones."""
    (shown_a, right_a), (shown_b, right_b) = (
        [moment(each) for each in point.split("=")] for point in points
    )
    if shown_a == shown_b:
        sys.exit("The two points must lie apart, best at the beginning and at the end.")
    factor = (right_b - right_a) / (shown_b - shown_a)
    return factor, right_a - shown_a * factor


def problems(cues: list[Cue]) -> Iterator[str]:
    for number, cue in enumerate(cues, 1):
        seconds = (cue.end - cue.begin) / 1000
        letters = sum(len(re.sub(r"<[^>]+>", "", line)) for line in cue.lines)
        if seconds <= 0:
            yield f"{number}: ends before it begins"
        elif letters / seconds > FASTEST:
            yield f"{number}: {letters / seconds:.0f} characters a second"
        if letters == 0:
            yield f"{number}: is empty"
        if len(cue.lines) > MOST_LINES or any(len(each) > LONGEST_LINE for each in cue.lines):
            yield f"{number}: more than {MOST_LINES} lines of {LONGEST_LINE}"
        if number < len(cues) and cue.end > cues[number].begin:
            yield f"{number}: runs into the next"


def main(arguments: list[str]) -> int:
    match arguments:
        case ["check", source]:
            cues = read(Path(source))
            faults = list(problems(cues))
            sys.stdout.write("".join(f"{each}\n" for each in faults))
            last = stamp(cues[-1].end) if cues else "-"
            sys.stdout.write(f"{len(cues)} subtitles to {last}, {len(faults)} problems\n")
            return 1 if faults else 0
        case ["shift", source, target, seconds]:
            cues = shift(read(Path(source)), 1.0, float(seconds) * 1000)
            text = render(cues)
        case ["stretch", source, target, *points] if len(points) == 2:
            cues = shift(read(Path(source)), *line_through(points))
            text = render(cues)
        case ["vtt", source, target]:
            cues = read(Path(source))
            text = web(cues)
        case _:
            sys.exit(__doc__)
    Path(target).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{target}: {len(cues)} subtitles\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
