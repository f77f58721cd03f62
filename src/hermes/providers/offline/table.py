"""Loads the table of requests, and lists it as an answer and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hermes.providers.offline import actions, file_actions
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


class Request:
    """One row of the table."""

    def __init__(self, title: str, fields: dict[str, str], wordings: list[str]) -> None:
        self.title = title
        self.examples = tuple(fields["examples"].split("; "))
        self.action: Action = _action(fields)
        self._patterns = [Pattern(wording) for wording in wordings]

    def matches(self, text: str, words: frozenset[str]) -> Iterator[Slots]:
        """The slots of each wording that matches the text as a whole."""
        for pattern in self._patterns:
            slots = pattern.match(text, words)
            if slots is not None:
                yield slots


@lru_cache(maxsize=1)
def request_groups() -> dict[str, list[Request]]:
    """The requests by the title of their group."""
    groups: dict[str, list[Request]] = {}
    text = Path(__file__).with_name("requests.txt").read_text("utf-8")
    for paragraph in text.split("\n\n"):
        head, *lines = paragraph.strip().splitlines()
        if head.startswith("## "):
            fields = dict(line.split(": ", 1) for line in lines if line.startswith(_FIELDS))
            wordings = [line for line in lines if not line.startswith(_FIELDS)]
            groups[list(groups)[-1]].append(Request(head[3:], fields, wordings))
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
    """One line per group, with the first example of each request."""
    lines = [
        f"- **{group}**: " + ", ".join(inline(request.examples[0]) for request in requests)
        for group, requests in request_groups().items()
    ]
    return "\n".join([_HELP, "", *lines, "", MODEL])


def documentation() -> str:
    """The page docs/offline-assistant.md."""
    parts = [_PAGE + MODEL + "\n"]
    for group, requests in request_groups().items():
        rows = [
            f"| {request.title} | {'<br>'.join(inline(each) for each in request.examples)} |"
            for request in requests
        ]
        parts.append("\n".join([f"## {group}\n", "| Request | Examples |", "| --- | --- |", *rows]))
        parts[-1] += "\n"
    return "\n".join(parts)
