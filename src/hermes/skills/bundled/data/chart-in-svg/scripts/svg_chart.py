"""Draws a bar or line chart as an SVG file from a CSV file, with nothing but the standard library.

python3 svg_chart.py bar|line IN.csv OUT.svg --x COLUMN --y COLUMN... [--title T] [--unit U]
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 64, 72
# Told apart by people with any colour vision, and in grey.
COLOURS = ("#0b5cad", "#e08a00", "#2a9d5c", "#b0307c", "#6b6b6b", "#7a4fc9")
MOST_LABELS = 16
LETTER = 7
# More would leave the page when it leans.
LONGEST = 16


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Return round numbers (1, 2, 5 and their powers of ten) that cover the range."""
    rough = (high - low or abs(high) or 1) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def format_number(number: float) -> str:
    return f"{number:,.10g}".replace(",", "\u202f")


class Plot:
    """The position of values on the page."""

    def __init__(self, count: int, values: list[float], *, from_zero: bool) -> None:
        low, high = min(values), max(values)
        self.ticks = ticks(min(low, 0), max(high, 0)) if from_zero else ticks(low, high)
        self.count = count
        self.slot = (WIDTH - LEFT - RIGHT) / count

    def x(self, number: float) -> float:
        """Return the middle of a slot."""
        return LEFT + self.slot * (number + 0.5)

    def y(self, amount: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - amount) / (high - low)


def text(x: float, y: float, content: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(content)}</text>'


def frame(plot: Plot, labels: list[str], title: str, unit: str) -> list[str]:
    parts = [text(LEFT, 26, title, "start", ' font-size="18" font-weight="bold"')]
    if unit:
        parts.append(text(LEFT, 48, unit, "start", ' fill="#555"'))
    for tick in plot.ticks:
        y = plot.y(tick)
        dark = "#333" if tick == 0 else "#ddd"
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{dark}"/>')
        parts.append(text(LEFT - 8, y + 4, format_number(tick), "end"))
    return parts + under(plot, labels)


def under(plot: Plot, labels: list[str]) -> list[str]:
    """Draw the labels below the axis: as many as can be read, upright where there is room."""
    every = math.ceil(len(labels) / MOST_LABELS)
    shown = [each if len(each) <= LONGEST else each[: LONGEST - 1] + "…" for each in labels]
    upright = max(map(len, shown)) * LETTER < plot.slot * every
    parts = []
    for number in range(0, len(labels), every):
        x, y = plot.x(number), HEIGHT - BOTTOM + 20
        label = text(0, 0, shown[number], "middle" if upright else "end")
        turn = "" if upright else " rotate(-30)"
        parts.append(f'<g transform="translate({x:.1f} {y:.1f}){turn}">{label}</g>')
    return parts


def bars(plot: Plot, series: list[list[float | None]]) -> list[str]:
    parts = []
    width = plot.slot * 0.8 / len(series)
    for index, values in enumerate(series):
        for number, amount in enumerate(values):
            if amount is not None:
                x = plot.x(number) - plot.slot * 0.4 + index * width
                y, zero = plot.y(amount), plot.y(0)
                parts.append(
                    f'<rect x="{x:.1f}" y="{min(y, zero):.1f}" width="{width:.1f}"'
                    f' height="{abs(zero - y):.1f}" fill="{COLOURS[index]}"/>'
                )
    return parts


def lines(plot: Plot, series: list[list[float | None]]) -> list[str]:
    """Draw one line per series. A missing value is a gap, not a zero."""
    parts = []
    for index, values in enumerate(series):
        pen, path = "M", ""
        for number, amount in enumerate(values):
            if amount is None:
                pen = "M"
                continue
            x, y = plot.x(number), plot.y(amount)
            path += f"{pen}{x:.1f} {y:.1f}"
            pen = "L"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[index]}"/>')
        parts.append(f'<path d="{path}" fill="none" stroke="{COLOURS[index]}" stroke-width="2"/>')
    return parts


def legend(names: list[str]) -> list[str]:
    parts, x = [], WIDTH - RIGHT
    for index, name in reversed(list(enumerate(names))):
        parts.append(text(x, 48, name, "end"))
        x -= 8 * len(name) + 14
        parts.append(f'<rect x="{x}" y="38" width="11" height="11" fill="{COLOURS[index]}"/>')
        x -= 16
    return parts


def read(path: Path, x: str, columns: list[str]) -> tuple[list[str], list[list[float | None]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    missing = [name for name in (x, *columns) if not rows or name not in rows[0]]
    if missing:
        sys.exit(
            f"No column {missing[0]!r} in {path}; it has: {', '.join(rows[0] if rows else ())}"
        )
    try:
        series = [[float(row[name]) if row[name] else None for row in rows] for name in columns]
    except ValueError as error:
        sys.exit(f"A value is not a number: {error}. Clean the file first.")
    return [row[x] for row in rows], series


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("kind", choices=("bar", "line"))
    options.add_argument("source", type=Path)
    options.add_argument("target", type=Path)
    options.add_argument("--x", required=True)
    options.add_argument("--y", required=True, nargs="+")
    options.add_argument("--title", default="")
    options.add_argument("--unit", default="")
    args = options.parse_args()
    if len(args.y) > len(COLOURS):
        sys.exit(f"At most {len(COLOURS)} columns in one picture; make several pictures.")
    labels, series = read(args.source, args.x, args.y)
    known = [each for values in series for each in values if each is not None]
    if not known:
        sys.exit("There are no values to draw.")
    plot = Plot(len(labels), known, from_zero=args.kind == "bar")
    parts = frame(plot, labels, args.title, args.unit)
    parts += bars(plot, series) if args.kind == "bar" else lines(plot, series)
    parts += legend(args.y) if len(args.y) > 1 else []
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' font-family="sans-serif" font-size="12"><title>{escape(args.title)}</title>'
        '<rect width="100%" height="100%" fill="#fff"/>'
    )
    args.target.write_text("\n".join((head, *parts, "</svg>\n")), encoding="utf-8")
    sys.stdout.write(f"{args.target}: {len(labels)} places, {len(known)} values\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
