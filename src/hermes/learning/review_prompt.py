"""The review prompt: instructions and a digest of the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.codec.json import encode
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.learning.triggers import TriggerReason

MOST_CHARS = 16_000
RESULT_CHARS = 600
ARGUMENT_CHARS = 400
WORDS_CHARS = 2_000

REVIEW = (
    "Review the task below. Does it contain a procedure that will be needed again? Then save it, "
    "in this order of preference: patch the skill that was loaded; patch another of your skills "
    "for this kind of task; add a file to one; only then create a skill. Name a skill after the "
    "kind of task, never after this case. Write the steps that worked, the pitfalls and how to "
    "verify; leave out detours. Put the user's corrections into the skill for that work; facts "
    "about the user or this environment go to memory. Do not save temporary failures, missing "
    "programs, or that a tool does not work. Make one complete change per skill. If nothing is "
    "worth saving, which is common, say “nothing to save” and stop."
)
WHY: dict[TriggerReason, str] = {
    "task": "It took {calls} tool calls.",
    "session": "Much work was done since the last save.",
    "correction": "The user corrected the work: find out what would have prevented that.",
}


def build_review_prompt(why: TriggerReason, calls: int) -> str:
    return f"{REVIEW}\n\n{WHY[why].format(calls=calls)}"


def conversation_digest(messages: Iterable[Message]) -> str:
    """Renders the conversation, cut at the start; calls come with their results."""
    lines: list[str] = []
    for message in messages:
        lines += _lines(message)
    text = "\n\n".join(lines)
    return text if len(text) <= MOST_CHARS else "[…]\n" + text[-MOST_CHARS:]


def format_skills(skills: Sequence[tuple[str, str, bool]]) -> str:
    """Lists the skills and whether each may be changed."""
    lines = [f"- {name}: {about}{'' if own else ' (not yours)'}" for name, about, own in skills]
    return "\n".join(("Existing skills:", *lines)) if lines else "There are no skills yet."


def _lines(message: Message) -> list[str]:
    match message:
        case UserMessage(origin="user"):
            return [f"User: {_cut(message.text, WORDS_CHARS)}"]
        case UserMessage():
            return []
        case AssistantMessage():
            lines = [f"Assistant: {_cut(message.text, WORDS_CHARS)}"] if message.text else []
            return lines + [
                f"Call {call.name} {_cut(encode(call.arguments).decode(), ARGUMENT_CHARS)}"
                for call in message.calls
            ]
        case ToolMessage(results=results):
            return [
                f"{'Failed' if result.failed else 'Result'} of {result.name}: "
                f"{_cut(result.text, RESULT_CHARS)}"
                for result in results
            ]


def _cut(text: str, most: int) -> str:
    """Keeps both ends: requests are at the start, errors at the end."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} […] {text[-most // 2 :]}"
