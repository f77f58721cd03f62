"""Explains failures, answers requests that were not understood, and generates help and its page.

python -m hermes.providers.offline.answers > docs/offline-assistant.md
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult
from hermes.providers.offline.language import (
    DEFAULT,
    AssistantLanguage,
    RequestKind,
    available_languages,
    load_language,
)
from hermes.providers.offline.parsing import understood_parts
from hermes.providers.offline.plan import Phrasebook, StepOutcome, StepTask, inline_code
from hermes.providers.offline.tool_output import (
    exit_code,
    output_lines,
    strings,
)

MAX_LINES = 15
MAX_NEAR = 5

_BY_CODE = {124: "hint.timeout", 126: "hint.permission", 127: "hint.no_program"}
_BY_TEXT = (
    (re.compile(r"not a git repository"), "hint.no_git"),
    (re.compile(r"command not found|no such command"), "hint.no_program"),
    (re.compile(r"permission denied|operation not permitted"), "hint.permission"),
    (re.compile(r"\bis a directory|omitting directory"), "hint.is_folder"),
    (re.compile(r"no such file|not found|does not exist|cannot access"), "hint.no_file"),
    (re.compile(r"timed out|timeout"), "hint.timeout"),
    (re.compile(r"interrupted"), "hint.interrupted"),
)


def explain_failure(task: StepTask, result: ToolResult, script: str = "") -> StepOutcome:
    return StepOutcome(text=explain(task.say, result, script), failed=True)


def explain(say: Phrasebook, result: ToolResult, script: str = "") -> str:
    """A heading, the tool's output, and the next step if known."""
    if "missing_tool" in result.details:
        return result.text
    return "\n\n".join(
        part
        for part in (_heading(say, result, script), _tool_output(say, result), _next(say, result))
        if part
    )


def call_subject(name: str, arguments: JsonObject) -> str:
    """What a call was about, for a heading."""
    for key in ("command", "path", "pattern", "session_id", "action"):
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return name


def _heading(say: Phrasebook, result: ToolResult, script: str) -> str:
    number = exit_code(result)
    if result.denied:
        return say("failed.refused", what=inline_code(script or result.name))
    if script and number is not None:
        return say("failed.command", command=inline_code(script), code=number)
    if "similar_files" in result.details:
        return say("failed.no_file", path=inline_code(str(result.details.get("path", ""))))
    return say("failed.tool", what=inline_code(script or result.name))


def _tool_output(say: Phrasebook, result: ToolResult) -> str:
    """The tool's output; empty if the heading says it all."""
    lines = output_lines(result)
    if not lines or "similar_files" in result.details:
        return ""
    if len(lines) == 1 and result.name != "terminal":
        return lines[0]
    return say.block(lines, limit=MAX_LINES, tail=True)


def _next(say: Phrasebook, result: ToolResult) -> str:
    near = strings(result.details, "similar_files") or strings(result.details, "near")
    if near:
        folder = str(result.details.get("path", "")).rpartition("/")[0]
        names = [inline_code(name.removeprefix(f"{folder}/")) for name in near[:MAX_NEAR]]
        return say("hint.similar", names=", ".join(names))
    number = exit_code(result)
    if number in _BY_CODE:
        return say(_BY_CODE[number])
    if "similar_files" in result.details:
        return say("hint.no_file")
    text = result.text.casefold()
    if result.denied:
        return say("hint.refused")
    for pattern, key in _BY_TEXT:
        if pattern.search(text):
            return say(key)
    return ""


MAX_SUGGESTED = 3
# Words that more than four kinds share say little about a request.
TELLING = 1 / 4

_MARKS = ".,;:!?\"'`()“”‘’"


def not_understood(voice: Phrasebook, text: str) -> str:
    """Never a guess: what it is, how to get a model, and what it could do instead."""
    paragraphs = [voice("cannot")]
    parts = understood_parts(voice.language, text)
    if parts:
        paragraphs.append(
            voice("cannot.part", parts=", ".join(inline_code(part) for part in parts))
        )
    near = closest(voice.language, text)
    if near and not parts:
        examples = voice.bullets([inline_code(kind.examples[0]) for kind in near])
        paragraphs.append(f"{voice('cannot.closest')}\n\n{examples}")
    paragraphs.append(voice("model.ways"))
    paragraphs.append(voice("cannot.help"))
    return "\n\n".join(paragraphs)


def closest(language: AssistantLanguage, text: str) -> tuple[RequestKind, ...]:
    """The kinds whose examples share the rarest words with the text."""
    words = _words(text) - _empty_words(language)
    uses = [(kind, words & used) for kind, used in _kind_words(language)]
    spread = {word: sum(word in used for _, used in uses) for word in words}
    scored = [(sum(1 / spread[word] for word in used), kind) for kind, used in uses]
    scored.sort(key=lambda pair: -pair[0])
    return tuple(kind for score, kind in scored[:MAX_SUGGESTED] if score >= TELLING)


@lru_cache(maxsize=2)
def _kind_words(language: AssistantLanguage) -> list[tuple[RequestKind, set[str]]]:
    """The words in title and examples of each kind."""
    return [(kind, _words(" ".join((kind.title, *kind.examples)))) for kind in language.data.kinds]


def _words(text: str) -> set[str]:
    """Names of files are not words."""
    pieces = (piece.strip(_MARKS) for piece in text.casefold().split())
    return {piece for piece in pieces if piece.isalpha()}


def _empty_words(language: AssistantLanguage) -> frozenset[str]:
    """Words that nearly every request contains."""
    data = language.data
    phrases = [*data.openers, *data.closers, *data.connectors]
    phrases += [phrase for name in data.everyday for phrase in data.words[name]]
    return language.fillers | frozenset(" ".join(phrases).split())


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
