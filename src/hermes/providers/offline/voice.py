"""Text for people: sentences of the language, and data as short Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.providers.offline.language import DEFAULT, AssistantLanguage, load_language

MAX_ITEMS = 30
MAX_LINES = 60
MAX_LINE_LENGTH = 300

_FENCE_NAMES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "sh": "sh",
    "json": "json",
    "toml": "toml",
    "yaml": "yaml",
    "yml": "yaml",
    "html": "html",
    "css": "css",
    "rs": "rust",
    "go": "go",
    "c": "c",
    "cpp": "cpp",
    "java": "java",
    "sql": "sql",
    "diff": "diff",
}


class Phrasebook:
    """Speaks one language; a missing sentence is taken from English."""

    def __init__(self, language: AssistantLanguage) -> None:
        self.language = language

    def __call__(self, key: str, **facts: object) -> str:
        sentence = self.language.data.say.get(key)
        if sentence is None:
            sentence = load_language(DEFAULT).data.say[key]
        return sentence.format_map(facts)

    def count(self, key: str, number: int, **facts: object) -> str:
        """The sentence `key`.one or `key`.many, with `count`."""
        return self(f"{key}.{'one' if number == 1 else 'many'}", count=number, **facts)

    def bullets(self, items: Sequence[str], *, limit: int = MAX_ITEMS) -> str:
        """Items as a list; those beyond the limit are counted."""
        lines = [f"- {item}" for item in items[:limit]]
        if len(items) > limit:
            lines.append(f"- {self('and_more', count=len(items) - limit)}")
        return "\n".join(lines)

    def block(
        self, lines: Sequence[str], *, name: str = "", limit: int = MAX_LINES, tail: bool = False
    ) -> str:
        """Lines in a code fence. With `tail` the last lines are kept."""
        left_out = len(lines) - limit
        shown = list(lines[-limit:] if tail else lines[:limit])
        fence = _fence(shown)
        body = "\n".join([f"{fence}{name}", *(_cut(line) for line in shown), fence])
        if left_out <= 0:
            return body
        note = self("lines_left_out", count=left_out)
        return f"{note}\n\n{body}" if tail else f"{body}\n\n{note}"


def inline_code(text: str) -> str:
    """Text as inline code, also if it contains backticks."""
    clean = " ".join(_cut(text).split()) or " "
    if "`" not in clean:
        return f"`{clean}`"
    ticks = "``" if "``" not in clean else "```"
    return f"{ticks} {clean} {ticks}"


def fence_name(path: str) -> str:
    """The language name after the fence, for syntax highlighting."""
    return _FENCE_NAMES.get(path.rpartition(".")[2].casefold(), "") if "." in path else ""


def format_size(count: int) -> str:
    """Bytes in human-readable form."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 1000 or unit == "TB":
            break
    return f"{amount:.1f} {unit}" if amount < 100 else f"{amount:.0f} {unit}"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_row(heads), "|" + " --- |" * len(heads), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _fence(lines: Sequence[str]) -> str:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return fence


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 1] + "…"
