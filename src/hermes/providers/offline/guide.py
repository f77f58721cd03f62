"""Generates the help text and the documentation page of the assistant.

python -m hermes.providers.offline.guide > docs/offline-assistant.md
"""

from __future__ import annotations

import sys

from hermes.providers.offline.language import (
    DEFAULT,
    AssistantLanguage,
    RequestKind,
    available_languages,
    load_language,
)
from hermes.providers.offline.voice import Phrasebook, inline_code

_OPENING = """\
# The offline assistant

Without a configured model, Hermes answers with the offline assistant. It is **not a language
model**: it understands a closed set of plain requests in free wording, and nothing else. It uses
the same tools, permissions and journal as a model, so it is safe to try, and everything shown here
works the same way with a model.

Wording is free: polite phrases, word order, synonyms and small typos do not matter. Quote names and
texts of several words. Join steps with “and” or “then”; a step may refer to earlier results (“it”,
“there”, “the second one”). It also runs lines that are clearly shell commands, such as `ls -la src`
or `$ make test`.

A request in unknown wording is matched by its keywords, if every word is accounted for and the
request only reads. A request that changes something must match exactly: text that would have to be
composed first (“write documentation to api.md”) is not written, and a word that is not a program
(“run away”) is not run. Quotes turn any words into a text or a command.

Follow-up requests may be short: “and in docs?”, “sorted by size”, “add bread”.

If a request is not understood, the assistant says so and does nothing.

## Get a model

{ways}
"""

_CLOSING = """\
## Another language

A language is one file in `src/hermes/providers/offline/languages/`. Available: {languages}.
A second file in `gists/` holds its keywords; only English has one. A request that is not understood
in the chosen language is tried in the others.
"""


def short_guide(voice: Phrasebook) -> str:
    """One line per group, with an example of each of its first kinds."""
    language = voice.language
    lines = [voice("help.opening")]
    for group, title in language.data.groups.items():
        kinds = [kind for kind in language.data.kinds if kind.group == group]
        if kinds:
            examples = ", ".join(inline_code(kind.examples[0]) for kind in kinds[:5])
            lines.append(f"- **{title}**: {examples}")
    return "\n".join([lines[0], "", *lines[1:], "", voice("help.closing")])


def guide() -> str:
    """The documentation page, generated from the language data."""
    english = load_language(DEFAULT)
    parts = [_OPENING.format(ways=Phrasebook(english)("model.ways"))]
    parts.append(f"## What it understands\n\n{len(english.data.kinds)} kinds of requests.\n")
    parts += [_group(english, group) for group in english.data.groups]
    parts.append(
        _CLOSING.format(languages=", ".join(_describe_language(c) for c in available_languages()))
    )
    return "\n".join(parts)


def _group(language: AssistantLanguage, group: str) -> str:
    kinds = [kind for kind in language.data.kinds if kind.group == group]
    rows = [f"| {kind.title} | {_examples(kind)} |" for kind in kinds]
    title = language.data.groups[group]
    return "\n".join([f"### {title}", "", "| What | For example |", "| --- | --- |", *rows, ""])


def _examples(kind: RequestKind) -> str:
    return "<br>".join(inline_code(example).replace("|", "\\|") for example in kind.examples)


def _describe_language(name: str) -> str:
    data = load_language(name).data
    return f"{data.name} (`{data.code}.json`, {len(data.kinds)} kinds)"


if __name__ == "__main__":
    sys.stdout.write(guide())
