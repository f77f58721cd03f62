"""The table of requests: loads it, reads a text as rows of it, and lists it as help and as a page
of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hermes.providers.offline import actions, file_actions
from hermes.providers.offline.arithmetic import evaluate
from hermes.providers.offline.patterns import Pattern
from hermes.providers.offline.steps import Action, Slots, inline

REFUSAL = (
    "No model is configured, so I can only do a fixed list of requests, and this is not one of "
    "them; nothing was done. `help` shows the list, `hermes setup` configures a model."
)
GREETING = (
    "Hello! I am the offline assistant, not a language model: I do a fixed list of requests. "
    "`help` shows it, `hermes setup` configures a model."
)
MODEL = (
    "For a language model run `hermes setup`, or do one of these: set a key such as "
    "`OPENAI_API_KEY` or `OPENROUTER_API_KEY`, start Ollama, llama.cpp, LM Studio or vLLM on this "
    "machine, or run `hermes model install smollm2`."
)
_HELP = (
    "I am the offline assistant, not a language model. I do these requests and nothing else; "
    "“and” joins several."
)
_PAGE = """\
# The offline assistant

<!-- Written by scripts/generate_reference.py; change the program, not this page. -->

Without a configured model, Hermes answers with the offline assistant. It is **not a language
model**: it matches a request with the list below. It uses the same tools, permissions and journal
as a model, so approvals, undo and replay work in the same way.

- A request must match a row as a whole. Anything else gets one line that says so, and nothing is
  done.
- Case, “please”, “can you” and final punctuation do not matter. Quote names with spaces and texts.
- “and” and “then” join up to five requests. All of them must match, or none is carried out; if
  one fails, the later ones are not carried out. “it” and “there” mean the file or folder that
  the request before names.
- It does not compose text. It knows nothing of earlier requests.

"""


class OfflineRequest:
    """One row of the table."""

    def __init__(self, title: str, fields: dict[str, str], wordings: list[str]) -> None:
        self.title = title
        self.examples = tuple(fields["examples"].split("; "))
        self.action: Action = _action(fields)
        self._patterns = [Pattern(wording) for wording in wordings]

    def matches(self, text: str, words: frozenset[str]) -> Iterator[Slots]:
        """Yield the slots of each wording that matches the text as a whole."""
        for pattern in self._patterns:
            slots = pattern.match(text, words)
            if slots is not None:
                yield slots


@lru_cache(maxsize=1)
def request_groups() -> dict[str, list[OfflineRequest]]:
    """Return the requests by the title of their group."""
    groups: dict[str, list[OfflineRequest]] = {}
    text = Path(__file__).with_name("requests.txt").read_text("utf-8")
    for paragraph in text.split("\n\n"):
        head, *lines = paragraph.strip().splitlines()
        if head.startswith("## "):
            fields = dict(line.split(": ", 1) for line in lines if line.startswith(_FIELDS))
            wordings = [line for line in lines if not line.startswith(_FIELDS)]
            groups[list(groups)[-1]].append(OfflineRequest(head[3:], fields, wordings))
        elif head.startswith("# "):
            groups[head[2:]] = []
    return groups


_FIELDS = ("do: ", "run: ", "answer: ", "empty: ", "examples: ")


def _action(fields: dict[str, str]) -> Action:
    if "do" in fields:
        name = fields["do"]
        action: Action = getattr(file_actions, name, None) or getattr(actions, name)
        return action
    if "run" in fields:
        return actions.report(fields["run"], fields["answer"], fields.get("empty", ""))
    if fields["answer"] == "{help}":
        return lambda slots: actions.answer(help_text())(slots)
    texts = {"model": MODEL, "greeting": GREETING}
    return actions.answer(fields["answer"].format_map(texts))


def help_text() -> str:
    """Return one line per group, with the first example of each request."""
    lines = [
        f"- **{group}**: " + ", ".join(inline(request.examples[0]) for request in requests)
        for group, requests in request_groups().items()
    ]
    return "\n".join([_HELP, "", *lines, "", MODEL])


def documentation() -> str:
    """Return the page docs/offline-assistant.md."""
    parts = [_PAGE + MODEL + "\n"]
    for group, requests in request_groups().items():
        rows = [
            f"| {request.title} | {'<br>'.join(inline(each) for each in request.examples)} |"
            for request in requests
        ]
        parts.append("\n".join([f"## {group}\n", "| Request | Examples |", "| --- | --- |", *rows]))
        parts[-1] += "\n"
    return "\n".join(parts)


MAX_LENGTH = 2000
MAX_STEPS = 5

MatchedStep = tuple[OfflineRequest, Slots]

_POLITE_START = re.compile(
    r"(?:please|hey|hi|hello|ok|okay|so|now|hermes|(?:can|could|would|will) you(?: please)?"
    r"|I (?:want|would like) you to|tell me)(?:,|!)?[ \t]+",
    re.IGNORECASE,
)
_POLITE_END = re.compile(r",?[ \t]+(?:please|thanks|thank you|for me|hermes)[ \t]*[?!.]*$", re.I)
_PUNCTUATION = re.compile(r"[ \t]*[?!.]+$")
# What begins with an operator belongs to the sum before it.
_NO_OPERATOR = r"(?![-+*/^×÷−\s]|(?:plus|minus|times|divided|multiplied|mod)\b)"
_CONNECTOR = re.compile(
    r"(?:(?:[ \t]*[,;.]?[ \t]+(?:and then|and also|and|then|after that)|[ \t]*[,;]"
    rf"|\.(?=[ \t])|\n)\s+|\n){_NO_OPERATOR}",
    re.IGNORECASE,
)
_CONNECTOR_WORD = re.compile(r"\b(?:and|then|after)\b|[.?!]$", re.IGNORECASE)
_QUOTATION = re.compile(r"\"[^\"]*\"|“[^”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)|‘[^’]*’")
_REFERENCE = re.compile(r"it|there|(?:in )?there|in(?:to)? it", re.IGNORECASE)
_SHORT_FORM = re.compile(r"(what|where|who)['’](s|re)(?=[ \t])", re.IGNORECASE)
# The first words of requests, which a text without quotes must not contain after a connector.
_VERBS = frozenset(
    (
        "add append calculate change clear commit compare copy count create delete display do "
        "execute find give grep how list make mark move open overwrite print put read remember "
        "remove rename replace run save say search send show start stop tell undo what when where "
        "which who write"
    ).split()
)


def match_request(text: str) -> tuple[MatchedStep, ...]:
    """Return the steps of a request; none if it is not understood or has two meanings. "It" and
    "there" are the file or folder that the step before names."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return ()
    readings = list(_readings(text, MAX_STEPS))
    return _resolve_references(readings[0]) if len(readings) == 1 else ()


def _readings(text: str, most: int) -> Iterator[tuple[MatchedStep, ...]]:
    """Yield the text as one request, else every way to read it as a sequence of requests."""
    whole = _match_one(text)
    if whole is not None:
        yield (whole,)
    if whole is not None or most < 2:
        return
    for connector in _connectors(text):
        first = _match_one(text[: connector.start()])
        if first is None:
            continue
        for rest in _readings(text[connector.end() :], most - 1):
            yield (first, *rest)


def _resolve_references(steps: tuple[MatchedStep, ...]) -> tuple[MatchedStep, ...]:
    """Resolve "it" and "there"; no steps if a reference means nothing."""
    resolved: list[MatchedStep] = []
    for request, slots in steps:
        before = resolved[-1][1] if resolved else {}
        # After a move, a copy or a deletion, the file has another path, two, or none.
        is_elsewhere = bool(before.keys() & {"folder", "other"}) or (
            bool(resolved) and resolved[-1][0].action is file_actions.delete
        )
        values = dict(slots)
        if "there" in values:
            values["folder"] = values.pop("there")
        if values.pop("one", ""):
            # "Which is the largest?" is about the files that the request before counts or lists.
            if before.get("entries", "").casefold() != "files":
                return ()
            values |= {"folder": before["folder"]} if "folder" in before else {}
        for name in ("file", "folder"):
            if name in values and _REFERENCE.fullmatch(values[name]):
                if name not in before or (name == "file" and is_elsewhere):
                    return ()
                values[name] = before[name]
        resolved.append((request, values))
    return tuple(resolved)


def _match_one(text: str) -> MatchedStep | None:
    """Return the only row that matches, with or without polite words around it."""
    for candidate in _candidates(text.strip()):
        words = frozenset(candidate.casefold().split())
        matches: list[MatchedStep] = []
        for request in (each for group in request_groups().values() for each in group):
            valid = (slots for slots in request.matches(candidate, words) if _is_valid(slots))
            if (slots := next(valid, None)) is not None:
                matches.append((request, slots))
        if matches:
            return matches[0] if len(matches) == 1 else None
    return None


def _candidates(text: str) -> Iterator[str]:
    """Yield the text without polite words, with and without its final punctuation, which belongs to
    a text or a path that ends the request."""
    text = _POLITE_END.sub("", text)
    while True:
        if short := _SHORT_FORM.match(text):
            text = f"{short[1]} {'is' if short[2] == 's' else 'are'}{text[short.end() :]}"
        yield text
        yield _PUNCTUATION.sub("", text)
        match = _POLITE_START.match(text)
        if match is None:
            return
        text = text[match.end() :]


def _is_valid(slots: Slots) -> bool:
    """Check what a regular expression cannot decide."""
    if "command" in slots and _CONNECTOR_WORD.search(_QUOTATION.sub("", slots["command"])):
        return False
    if "sum" in slots and not _is_sum(slots["sum"]):
        return False
    return not any(
        _contains_request(slots[name]) for name in ("rest", "fact", "statement") if name in slots
    )


def _is_sum(text: str) -> bool:
    try:
        return evaluate(text) is not None
    except (ArithmeticError, ValueError):
        return True


def _contains_request(text: str) -> bool:
    """Return whether a text without quotes seems to go on with another request."""
    following = (text[found.end() :].split(None, 1) for found in _connectors(text))
    return any(words and words[0].casefold() in _VERBS for words in following)


def _connectors(text: str) -> Iterator[re.Match[str]]:
    """Yield the connectors outside quotations."""
    quotations = [found.span() for found in _QUOTATION.finditer(text)]
    for found in _CONNECTOR.finditer(text):
        if not any(start < found.start() < end for start, end in quotations):
            yield found
