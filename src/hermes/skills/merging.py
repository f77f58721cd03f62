"""Skills that become one: what is asked of a model for it, and what such a merge must not lose."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.codec.values import Value
from hermes.core.prompt import ToolSpec

MOST_NAMED = 5
INSTRUCTIONS = """You look after a library of skills: short procedures that an assistant loads when
a task fits. Below are all that it wrote itself. Find those that are about the same kind of task
and call merge_skills for each such group: one text that has every step, command, pitfall and check
of its parts, said once, in the order in which they are needed, with a description by which the
right moment to load it is known. Merge only what somebody would look for under one name. Most
libraries need few merges or none: say “nothing to merge” then."""

TOOL = ToolSpec(
    name="merge_skills",
    description="Let one skill take the place of several.",
    parameters={
        "type": "object",
        "properties": {
            "into": {"type": "string", "description": "Its name: one of them, or a new one"},
            "skills": {
                "type": "array",
                "items": {"type": "string"},
                "description": "All skills whose place it takes",
            },
            "content": {"type": "string", "description": "The whole SKILL.md"},
        },
        "required": ["into", "skills", "content"],
    },
)

_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1", re.MULTILINE | re.DOTALL)


class Merge(Value):
    """What a model wants; `skills` may name `into` too."""

    into: str
    skills: tuple[str, ...]
    content: str

    @property
    def parts(self) -> tuple[str, ...]:
        """All that it is made of."""
        return tuple(dict.fromkeys(self.skills))

    @property
    def absorbed(self) -> tuple[str, ...]:
        return tuple(name for name in self.parts if name != self.into)


def lost(originals: Mapping[str, str], merged: str) -> tuple[str, ...]:
    """Commands and names in code that a part has and the whole has not."""
    there = _flat(merged)
    wanted = dict.fromkeys(code for text in originals.values() for code in codes(text))
    return tuple(code for code in wanted if not _stands(code, there))[:MOST_NAMED]


def codes(text: str) -> list[str]:
    """Everything that is set as code: spans, and each line of a block."""
    blocks = [line for found in _FENCE.findall(text) for line in found[1].splitlines()]
    spans = _SPAN.findall(_FENCE.sub("", text))
    return [flat for code in (*blocks, *spans) if (flat := _flat(code))]


def _stands(code: str, text: str) -> bool:
    """As words of its own, not as a part of others."""
    return re.search(rf"(?<!\w){re.escape(code)}(?!\w)", text) is not None


def _flat(text: str) -> str:
    return " ".join(text.split())
