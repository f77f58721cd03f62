"""Writes what the assistant can do: short for "help", long for the documentation.

python -m hermes.providers.offline.guide > docs/offline-assistant.md
"""

from __future__ import annotations

import sys

from hermes.providers.offline.language import DEFAULT, Kind, Language, available, load
from hermes.providers.offline.voice import Voice, code

_OPENING = """\
# The offline assistant

On a machine without any model, Hermes answers with the offline assistant. It is **not a language
model**: it understands a closed set of plain requests in free wording, and nothing else. What it
does, it does with the same tools, the same permissions and the same journal as a model would, so
it is safe to try, and everything you see here works the same way later.

Say it as you like: politeness, word order, synonyms and small typing errors do not matter. Quote
names and texts that hold several words. Join steps with “and” or “then”; a step may speak of what
came before (“it”, “there”, “the second one”). It also answers to lines that are plainly meant for
a shell, such as `ls -la src` or `$ make test`.

A wording that it does not know is read by its telling words, if every word makes sense together
and the request only looks at something. Whatever changes something must be said plainly: a text
that someone would have to make up (“write documentation to api.md”) is not written, and a word
that is no program (“run away”) is not run. Quotes make a text or a command of any words.

After a request, shorter ones will do: “and in docs?”, “sorted by size”, “add bread”.

When a request is not understood, it says so and does nothing.

## Get a model

{ways}
"""

_CLOSING = """\
## Another language

A language is one file in `src/hermes/providers/offline/languages/`. Present: {languages}. A second
file in `gists/` holds its telling words; so far English has one. A request that is not understood
in the chosen language is tried in the others.
"""


def short_guide(voice: Voice) -> str:
    """One line per group, with an example of each of its first kinds."""
    language = voice.language
    lines = [voice("help.opening")]
    for group, title in language.data.groups.items():
        kinds = [kind for kind in language.data.kinds if kind.group == group]
        if kinds:
            examples = ", ".join(code(kind.examples[0]) for kind in kinds[:5])
            lines.append(f"- **{title}**: {examples}")
    return "\n".join([lines[0], "", *lines[1:], "", voice("help.closing")])


def guide() -> str:
    """The page of the documentation, made from the data of the languages."""
    english = load(DEFAULT)
    parts = [_OPENING.format(ways=Voice(english)("model.ways"))]
    parts.append(f"## What it understands\n\n{len(english.data.kinds)} kinds of requests.\n")
    parts += [_group(english, group) for group in english.data.groups]
    parts.append(_CLOSING.format(languages=", ".join(_described(c) for c in available())))
    return "\n".join(parts)


def _group(language: Language, group: str) -> str:
    kinds = [kind for kind in language.data.kinds if kind.group == group]
    rows = [f"| {kind.title} | {_examples(kind)} |" for kind in kinds]
    title = language.data.groups[group]
    return "\n".join([f"### {title}", "", "| What | For example |", "| --- | --- |", *rows, ""])


def _examples(kind: Kind) -> str:
    return "<br>".join(code(example).replace("|", "\\|") for example in kind.examples)


def _described(name: str) -> str:
    data = load(name).data
    return f"{data.name} (`{data.code}.json`, {len(data.kinds)} kinds)"


if __name__ == "__main__":
    sys.stdout.write(guide())
