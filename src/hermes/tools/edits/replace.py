"""Replaces a piece of text: finds it by the strictest strategy that works."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.tools.edits import strategies
from hermes.tools.edits.indentation import Indentation, indent_of
from hermes.tools.edits.text import Splice, TextSpan

Finder = Callable[[str, str], list[TextSpan]]

FAITHFUL: tuple[tuple[str, Finder], ...] = (
    ("exact", strategies.exact),
    ("line-trimmed", strategies.line_trimmed),
    ("whitespace-normalised", strategies.whitespace_normalised),
    ("indentation-flexible", strategies.indentation_flexible),
    ("escape-normalised", strategies.escape_normalised),
    ("trimmed-boundary", strategies.trimmed_boundary),
    ("unicode-normalised", strategies.unicode_normalised),
)
APPROXIMATE: tuple[tuple[str, Finder], ...] = (
    ("block-anchor", strategies.block_anchor),
    ("context-aware", strategies.context_aware),
)
# Longer texts are generated: exact match only, so that a miss stays cheap.
MAX_FORGIVING_CHARS = 4_000_000
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'"}


class TextMatch(Value):
    """Where a text is, and which strategy found it."""

    strategy: str
    spans: tuple[TextSpan, ...]

    @property
    def is_approximate(self) -> bool:
        return any(self.strategy == name for name, _ in APPROXIMATE)


def find(text: str, old: str, *, replace_all: bool = False) -> TextMatch | None:
    """Use the first strategy that finds anything. Similar text is never replaced everywhere:
    `replace_all` skips the approximate strategies."""
    chain = FAITHFUL if replace_all else (*FAITHFUL, *APPROXIMATE)
    for name, finder in chain if len(text) <= MAX_FORGIVING_CHARS else FAITHFUL[:1]:
        if spans := finder(text, old):
            return TextMatch(strategy=name, spans=tuple(spans))
    return None


def replacements(text: str, old: str, new: str, found: TextMatch) -> tuple[Splice, ...]:
    """Return the splices that put `new` where `old` was found, in the style of the file."""
    return tuple(
        Splice(
            start=span.start,
            end=span.end,
            text=_fit(
                found.strategy,
                old,
                new,
                real=text[span.start : span.end],
                lead=text[text.rfind("\n", 0, span.start) + 1 : span.start],
                text=text,
            ),
        )
        for span in found.spans
    )


def _fit(strategy: str, old: str, new: str, *, real: str, lead: str, text: str) -> str:
    """Adapt the new text to the text that was found (`real`) in `text`; `lead` is what is before it
    in its line."""
    match strategy:
        case "exact":
            return new
        case "escape-normalised":
            return _unescaped_alike(old, new)
        case "trimmed-boundary":
            _refuse_strange_escapes(old, new, real)
            before = old[: len(old) - len(old.lstrip())]
            after = old[len(old.rstrip()) :]
            return new.removeprefix(before).removesuffix(after)
        case _:
            _refuse_strange_escapes(old, new, real)
            rows = _indented_alike(
                old.split("\n"), new.split("\n"), real.split("\n"), lead=lead, text=text
            )
            # A file that ends without a newline stays so.
            ends = old.endswith("\n") and not real.endswith("\n")
            return "\n".join(rows).removesuffix("\n" if ends else "")


def _unescaped_alike(old: str, new: str) -> str:
    """Unescape `new` like `old`, unless it was clearly not escaped."""
    for escape, plain in _ESCAPES.items():
        bare_in_old = plain in old.replace(escape, "")
        bare_in_new = plain in new.replace(escape, "")
        if escape in old and not bare_in_old and bare_in_new:
            raise ToolError(
                "old_string is escaped once too often but new_string is not, so it is unclear what "
                "should be written. Nothing was changed; send both as plain text."
            )
    return strategies.unescape(new)


def _indented_alike(
    old: list[str], new: list[str], real: list[str], *, lead: str, text: str
) -> list[str]:
    has_more = any(row.strip() for row in old[1:])
    is_bare = not indent_of(old[0])
    if not lead and not (is_bare and has_more):
        return Indentation(old, real, new, text).translate_all(new)
    if not has_more:
        if lead.strip():
            return new
        rows = Indentation(old, [lead + real[0]], new, text).translate_all(new)
        return [rows[0].removeprefix(lead), *rows[1:]]
    # The indentation of the first line may be outside the match, or left out there only, so that
    # only the other lines tell.
    others = Indentation(old[1:], real[1:], new[1:], text, near=[lead + real[0], *real[1:]])
    rest = others.translate_all(new[1:])
    if lead.strip():
        return [new[0], *rest]
    if indent_of(new[0]) == indent_of(old[0]):
        return [("" if lead else indent_of(real[0])) + new[0].lstrip(" \t"), *rest]
    return [others.translate_all(new[:1])[0].removeprefix(lead), *rest]


def _refuse_strange_escapes(old: str, new: str, real: str) -> None:
    for escape in _ESCAPES:
        if escape in old and escape in new and escape not in real:
            raise ToolError(
                f"old_string and new_string contain {escape}, which the file does not have there. "
                "Nothing was changed; send both as plain text, without extra backslashes."
            )
