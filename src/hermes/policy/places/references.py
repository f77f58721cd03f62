"""Finds the `@` references in a message, and judges what they would bring in."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.core.effects import Allow, Decision, Deny
from hermes.policy.patterns import regex
from hermes.policy.places.judging import Files

_REFERENCE = regex(
    r"""(?ix) (?<![\w/@]) @
    (?: (?P<kind>file|folder|dir|url|git|image|media) :\s? )?
    (?: "(?P<double>[^"]+)" | '(?P<single>[^']+)' | `(?P<tick>[^`]+)` | (?P<bare>[^\s"'`]+) )
    """
)
_LINES = regex(r"(?::\d+(?:-\d+|:\d+)?|\#L\d+(?:-L?\d+)?)$")
_CLOSERS = {")": "(", "]": "[", "}": "{", ">": "<"}
WORDS = frozenset(("diff", "staged"))


class Reference(Value):
    """`kind` is "file", "folder", "url", "git", "diff" or "staged"."""

    kind: str
    target: str


def references(message: str) -> tuple[Reference, ...]:
    found: list[Reference] = []
    for match in _REFERENCE.finditer(message):
        quoted = match["double"] or match["single"] or match["tick"]
        kind = (match["kind"] or "").lower()
        target = quoted or _trimmed(match["bare"])
        if not target:
            continue
        if not kind and target in WORDS:
            found.append(Reference(kind=target, target=""))
            continue
        if kind not in ("url", "git"):
            # A name may end in what looks like a line number, so both are judged.
            target_without = _LINES.sub("", target)
            if target_without and target_without != target:
                found.append(Reference(kind="file", target=target_without))
        shown = {"dir": "folder", "image": "file", "media": "file", "": "file"}.get(kind, kind)
        found.append(Reference(kind=shown, target=target))
    return tuple(found)


def judge_references(message: str, files: Files, cwd: str = "") -> Decision:
    """The strictest decision about the files of all references in the message. References to
    URLs are judged where they are fetched."""
    for reference in references(message):
        if reference.kind in ("file", "folder"):
            decision = files.refer(reference.target, cwd)
            if isinstance(decision, Deny):
                return decision
    return Allow(harmless=True)


def _trimmed(target: str) -> str:
    """Without the signs that end a sentence or a bracket around the reference."""
    while target:
        last = target[-1]
        ends = last in ",.;!?" and not target.endswith("..")
        closes = last in _CLOSERS and target.count(last) > target.count(_CLOSERS[last])
        if not (ends or closes):
            break
        target = target[:-1]
    return target
