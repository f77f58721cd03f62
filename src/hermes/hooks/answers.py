"""Interprets the return values of callbacks; invalid ones are logged and ignored."""

from __future__ import annotations

import logging

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.hooks import HookVerdict

log = logging.getLogger(__name__)

BLOCK = "A hook blocked this call."
ASK = "A hook requires approval."


def contexts(answers: tuple[object, ...]) -> list[str]:
    """Returns the context texts for the model."""
    found = []
    for answer in answers:
        text = answer.get("context") if isinstance(answer, dict) else answer
        if isinstance(text, str):
            found.append(text.strip())
        elif answer:
            _log_ignored("pre_llm_call", answer)
    return [text for text in found if text]


def verdict(answers: tuple[object, ...]) -> HookVerdict | None:
    """The first block wins. Otherwise a person is asked if any callback requires it, and the
    first modified arguments apply, so that the person approves exactly those."""
    ask: str | None = None
    arguments: JsonObject | None = None
    for answer in answers:
        match answer:
            case {"action": "block", **more}:
                return HookVerdict(block=_message(more) or BLOCK)
            case {"action": "approve", **more}:
                ask = _reason(more) if ask is None else ask
            case {"action": "modify", "args": dict() as given}:
                arguments = _json(given) if arguments is None else arguments
            case _ if answer:
                _log_ignored("pre_tool_call", answer)
    if ask is None and arguments is None:
        return None
    return HookVerdict(ask=ask, arguments=arguments)


def first_text(hook: str, answers: tuple[object, ...]) -> str | None:
    """Returns the first non-empty text."""
    for answer in answers:
        if isinstance(answer, str):
            if answer:
                return answer.encode("utf-8", "replace").decode()
        elif answer:
            _log_ignored(hook, answer)
    return None


def _message(answer: dict[object, object]) -> str:
    message = answer.get("message")
    return message.encode("utf-8", "replace").decode() if isinstance(message, str) else ""


def _reason(answer: dict[object, object]) -> str:
    rule, message = answer.get("rule_key"), _message(answer) or ASK
    return f"{message} [{rule}]" if isinstance(rule, str) and rule else message


def _json(given: dict[object, object]) -> JsonObject | None:
    """Returns a JSON copy; None for invalid JSON."""
    try:
        return decode(dict, encode(given))
    except (DecodeError, TypeError, ValueError, OverflowError, RecursionError):
        _log_ignored("pre_tool_call", given)
        return None


def _log_ignored(hook: str, answer: object) -> None:
    log.warning("hook answer ignored", extra={"hook": hook, "kind": type(answer).__name__})
