"""Styles with special tokens: DeepSeek, Kimi, Mistral, GLM, and Harmony (gpt-oss)."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.parsing import (
    CallStyle,
    NoCall,
    RawCall,
    Reading,
    Steps,
    TextTape,
    parse_arguments,
    parse_calls,
)

_NAME_SIZE = 200
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([A-Za-z0-9_.\-]+)")
_KIMI_ID = re.compile(r"(?:functions\.)?([A-Za-z0-9_\-]+)(?::\d+)?")


def _deepseek(tape: TextTape) -> Reading:
    """Words of a token are joined by ▁, or by what a tokenizer made of it."""
    bar, gap = _separators(tape)

    def token(*words: str) -> str:
        return f"<{bar}{gap.join(words)}{bar}>"

    section = yield from tape.accept(token("tool", "calls", "begin"))
    found: list[RawCall] = []
    while True:
        yield from tape.skip_spaces()
        if section and (yield from tape.accept(token("tool", "calls", "end"))):
            break
        if found and (not section or (tape.ended and not tape.ahead)):
            break
        yield from tape.expect(token("tool", "call", "begin"))
        head = (yield from tape.until(token("tool", "sep"), most=_NAME_SIZE)).strip()
        if head == "function":
            head = (yield from tape.until("\n", most=_NAME_SIZE)).strip()
        name = tape.mark_name(tape.offer.strip_namespace(head))
        found.append(RawCall(name, (yield from _maybe_fenced(tape))))
        yield from tape.skip_spaces()
        yield from tape.expect(token("tool", "call", "end"))
    if not found:
        raise NoCall
    return tuple(found)


def _separators(tape: TextTape) -> tuple[str, str]:
    opener = next(o for o in _DEEPSEEK_OPENERS if tape.text.startswith(o, tape.at))
    return opener[1], opener[6]


def _maybe_fenced(tape: TextTape) -> Steps[JsonObject]:
    yield from tape.skip_spaces()
    fenced = yield from tape.any_of("```json", "```")
    yield from tape.skip_spaces()
    arguments = parse_arguments((yield from tape.balanced_text()))
    if fenced:
        yield from tape.skip_spaces()
        yield from tape.expect("```")
    return arguments


def _kimi(tape: TextTape) -> Reading:
    section = yield from tape.accept("<|tool_calls_section_begin|>")
    found: list[RawCall] = []
    while True:
        yield from tape.skip_spaces()
        if section and found and (yield from tape.accept("<|tool_calls_section_end|>")):
            break
        if found and (not section or (tape.ended and not tape.ahead)):
            break
        yield from tape.expect("<|tool_call_begin|>")
        id = yield from tape.until("<|tool_call_argument_begin|>", most=_NAME_SIZE)
        named = _KIMI_ID.fullmatch(id.strip())
        if named is None:
            raise NoCall
        name = tape.mark_name(named[1])
        yield from tape.skip_spaces()
        found.append(RawCall(name, parse_arguments((yield from tape.balanced_text()))))
        yield from tape.skip_spaces()
        yield from tape.expect("<|tool_call_end|>")
    return tuple(found)


def _mistral(tape: TextTape) -> Reading:
    """A list of calls, or the newer `name[ARGS]{…}`; neither has an end token."""
    yield from tape.expect("[TOOL_CALLS]")
    yield from tape.skip_spaces()
    if tape.ahead in ("[", "{"):
        found = parse_calls((yield from tape.balanced_text()))
        tape.mark_name(tape.offer.strip_namespace(found[0].name))
        yield from tape.any_of("[/TOOL_CALLS]")
        return found
    name = tape.mark_name(tape.offer.strip_namespace((yield from tape.word())))
    if (yield from tape.accept("[CALL_ID]")):
        yield from tape.word()
    yield from tape.any_of("[ARGS]")
    yield from tape.skip_spaces()
    return (RawCall(name, parse_arguments((yield from tape.balanced_text()))),)


def _glm(tape: TextTape) -> Reading:
    """The name, then keys and values in turn; all values are text."""
    yield from tape.expect("<tool_call>")
    yield from tape.skip_spaces()
    name = yield from tape.word()
    yield from tape.skip_spaces()
    if not name or tape.ahead != "<":
        raise NoCall
    arguments: JsonObject = {}
    while not (yield from tape.accept("</tool_call>")):
        yield from tape.expect("<arg_key>")
        key = (yield from tape.until("</arg_key>", most=_NAME_SIZE)).strip()
        yield from tape.skip_spaces()
        yield from tape.expect("<arg_value>")
        tape.mark_name(tape.offer.strip_namespace(name))
        value = yield from tape.value("</arg_value>", "<arg_key>", "</tool_call>")
        if key in arguments:
            raise NoCall
        arguments[key] = value
        yield from tape.skip_spaces()
    return (RawCall(tape.mark_name(tape.offer.strip_namespace(name)), arguments, typed=False),)


def _harmony(tape: TextTape) -> Reading:
    """A message whose header names a function as recipient; other messages are not calls."""
    yield from tape.any_of("<|start|>assistant", "<|channel|>commentary")
    header = yield from tape.until("<|message|>", most=_NAME_SIZE)
    recipient = _RECIPIENT.search(header)
    # The analysis channel is reasoning, not a call.
    if recipient is None or "<|channel|>analysis" in header:
        raise NoCall
    name = tape.mark_name(tape.offer.strip_namespace(recipient[1]))
    yield from tape.skip_spaces()
    arguments = parse_arguments((yield from tape.balanced_text()))
    yield from tape.skip_spaces()
    if not (yield from tape.any_of("<|call|>", "<|end|>")) and not (tape.ended and not tape.ahead):
        raise NoCall
    return (RawCall(name, arguments),)


def _qwen_agent(tape: TextTape) -> Reading:
    yield from tape.expect("✿FUNCTION✿:")
    yield from tape.skip_spaces()
    name = tape.mark_name(tape.offer.strip_namespace((yield from tape.word())))
    yield from tape.skip_spaces()
    yield from tape.expect("✿ARGS✿:")
    yield from tape.skip_spaces()
    return (RawCall(name, parse_arguments((yield from tape.balanced_text()))),)


_DEEPSEEK_OPENERS = tuple(
    f"<{bar}tool{gap}{what}{gap}begin{bar}>"
    for bar in ("｜", "|")
    for gap in ("▁", "_", " ")
    for what in ("calls", "call")
    # This one belongs to Kimi.
    if (bar, gap, what) != ("|", "_", "call")
)
_DEEPSEEK_CLOSERS = tuple(opener.replace("begin", "end") for opener in _DEEPSEEK_OPENERS)

STYLES = (
    CallStyle("deepseek", _deepseek, openers=_DEEPSEEK_OPENERS, closers=_DEEPSEEK_CLOSERS),
    CallStyle(
        "kimi",
        _kimi,
        openers=("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        closers=("<|tool_calls_section_end|>", "<|tool_call_end|>"),
    ),
    CallStyle("mistral", _mistral, openers=("[TOOL_CALLS]",), closers=("[/TOOL_CALLS]",)),
    CallStyle("glm", _glm, openers=("<tool_call>",), closers=("</tool_call>", "</arg_value>")),
    CallStyle(
        "harmony",
        _harmony,
        openers=("<|channel|>commentary to=", "<|start|>assistant"),
        closers=("<|call|>",),
    ),
    CallStyle("qwen-agent", _qwen_agent, openers=("✿FUNCTION✿:",), closers=("✿RESULT✿",)),
)
