"""Merges similar skills: the prompt for the model and the check that nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.codec.values import Value
from hermes.core.prompt import ToolSpec

MOST_NAMED = 5
INSTRUCTIONS = """You maintain a library of skills: short procedures that an assistant loads when a
task fits. Below are all skills that it wrote itself. Find skills about the same kind of task and
call merge_skills for each group: one text with every step, command, pitfall and check of its
parts, stated once, in the order of use, with a description that tells when to load it. Merge only
what people would look up under one name. Most libraries need few merges or none: then say
“nothing to merge”."""

TOOL = ToolSpec(
    name="merge_skills",
    description="Replace several skills by one.",
    parameters={
        "type": "object",
        "properties": {
            "into": {"type": "string", "description": "Name: one of them or a new one"},
            "skills": {
                "type": "array",
                "items": {"type": "string"},
                "description": "All skills that it replaces",
            },
            "content": {"type": "string", "description": "The whole SKILL.md"},
        },
        "required": ["into", "skills", "content"],
    },
)

_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1", re.MULTILINE | re.DOTALL)


class Merge(Value):
    """A merge that the model requests; `skills` may include `into`."""

    into: str
    skills: tuple[str, ...]
    content: str

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.skills))

    @property
    def absorbed(self) -> tuple[str, ...]:
        return tuple(name for name in self.parts if name != self.into)


def missing_code(originals: Mapping[str, str], merged: str) -> tuple[str, ...]:
    """Returns code snippets of the parts that the merged text lacks."""
    there = _flat(merged)
    wanted = dict.fromkeys(code for text in originals.values() for code in codes(text))
    return tuple(code for code in wanted if not _contains_code(code, there))[:MOST_NAMED]


def codes(text: str) -> list[str]:
    """Returns all code spans and all lines of code blocks."""
    blocks = [line for found in _FENCE.findall(text) for line in found[1].splitlines()]
    spans = _SPAN.findall(_FENCE.sub("", text))
    return [flat for code in (*blocks, *spans) if (flat := _flat(code))]


def _contains_code(code: str, text: str) -> bool:
    """Matches whole words only."""
    return re.search(rf"(?<!\w){re.escape(code)}(?!\w)", text) is not None


def _flat(text: str) -> str:
    return " ".join(text.split())
