"""Markdown as plain text: emphasis marks are removed; lists, code and tables stay readable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hermes.surfaces.cli.chat.blocks import MarkdownBlock
from hermes.surfaces.cli.chat.cells import cells, pad, wrap

_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)", re.DOTALL)
_KEPT = re.compile(r"\x00(\d+)\x00")
_MARKS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"!\[([^\]]*)\]\(\s*([^)\s]+)[^)]*\)"), lambda m: _link(m[1] or "picture", m[2])),
    (re.compile(r"\[([^\]]+)\]\(\s*([^)\s]+)[^)]*\)"), lambda m: _link(m[1], m[2])),
    (re.compile(r"<((?:https?|mailto):[^>\s]+)>"), r"\1"),
    (re.compile(r"(?<!\\)\*\*\*(?=\S)(.+?)(?<=\S)\*\*\*", re.DOTALL), r"\1"),
    (re.compile(r"(?<!\\)\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL), r"\1"),
    # One word between double underscores is more likely a Python name than bold.
    (re.compile(r"(?<![\w\\])__(?!\w+__)(?=\S)(.+?)(?<=\S)__(?!\w)", re.DOTALL), r"\1"),
    (re.compile(r"(?<![\w\\*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?![\w*])", re.DOTALL), r"\1"),
    (re.compile(r"(?<![\w\\_])_(?=[^\s_])([^_]+?)(?<=\S)_(?![\w_])", re.DOTALL), r"\1"),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~", re.DOTALL), r"\1"),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~>])"), r"\1"),
)


def plain_lines(block: MarkdownBlock, width: int) -> list[str]:
    """The rows of a block other than code and prose."""
    match block.kind:
        case "heading":
            return wrap(plain_words(block.text.strip().strip("#").strip()), width)
        case "rule":
            return ["─" * min(width, 40)]
        case "quote":
            words = (line.lstrip().removeprefix(">").strip() for line in block.lines)
            return [f"│ {row}" for line in words for row in wrap(plain_words(line), width - 2)]
        case "table":
            return table_rows(block, width)
        case _:
            raise ValueError(f"{block.kind} is laid out elsewhere")


def plain_words(text: str) -> str:
    """Removes emphasis and link marks; code spans stay as they are."""
    spans: list[str] = []

    def keep(span: re.Match[str]) -> str:
        spans.append(span[0])
        return f"\x00{len(spans) - 1}\x00"

    # Emphasis may span a code span, so code spans are replaced while marks are removed.
    words = _strip_marks(_CODE_SPAN.sub(keep, text.replace("\x00", "")))
    return _KEPT.sub(lambda found: spans[int(found[1])], words)


def table_rows(block: MarkdownBlock, width: int) -> list[str]:
    """Aligned columns; if they do not fit, each row as a list of its cells."""
    rows = [_cells_of(line) for line in block.lines]
    head, *body = [row for row in rows if not _is_divider(row)] or [[]]
    columns = max((len(row) for row in (head, *body)), default=0)
    head, *body = [row + [""] * (columns - len(row)) for row in (head, *body)]
    widths = [max(cells(row[n]) for row in (head, *body)) for n in range(columns)]
    if sum(widths) + 2 * (columns - 1) > width:
        return list(_records(head, body, width))
    divider = next((row for row in rows if _is_divider(row)), [])
    right = [cell.endswith(":") and not cell.startswith(":") for cell in divider]
    right += [False] * (columns - len(right))
    lines = ["  ".join(map(_align, row, widths, right)).rstrip() for row in (head, *body)]
    return [lines[0], "  ".join("─" * each for each in widths), *lines[1:]]


def _align(cell: str, width: int, right: bool) -> str:
    return " " * (width - cells(cell)) + cell if right else pad(cell, width)


def _records(head: Sequence[str], body: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    for number, row in enumerate(body):
        if number:
            yield ""
        for name, value in zip(head, row, strict=True):
            yield from wrap(f"{name}: {value}" if name else value, width, hang="  ")


def _cells_of(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return [plain_words(cell.strip()) for cell in re.split(r"(?<!\\)\|", bare)]


def _is_divider(row: Sequence[str]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in row)


def _strip_marks(text: str) -> str:
    for pattern, instead in _MARKS:
        text = pattern.sub(instead, text)
    return text


def _link(words: str, address: str) -> str:
    return address if words == address else f"{words} ({address})"
