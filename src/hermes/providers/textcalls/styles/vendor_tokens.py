"""Styles with special tokens: DeepSeek, Kimi, Mistral, GLM, Harmony (gpt-oss) and Gemma."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.textcalls.parsing import (
    CallStyle,
    NoCall,
    OneCall,
    RawCall,
    Reading,
    Steps,
    TextTape,
    parse_calls,
    read_section,
)
from hermes.providers.textcalls.validation import UnreadableValue, parse_value

_NAME_SIZE = 200
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([A-Za-z0-9_.\-]+)")
_KIMI_ID = re.compile(r"(?:functions\.)?([A-Za-z0-9_\-]+)(?::\d+)?")
_MAX_DEPTH = 20
_KEY = 100
_WORD = re.compile(r"[\w.\-]+")
_SCALAR = re.compile(r"[^,\]}\s<]+")


def _deepseek(tape: TextTape) -> Reading:
    """Read calls between DeepSeek's tokens, whose words are joined by ▁, or by what a tokenizer
    made of it."""
    opener = next(o for o in _DEEPSEEK_OPENERS if tape.text.startswith(o, tape.at))
    bar, gap = opener[1], opener[6]

    def token(*parts: str) -> str:
        return f"<{bar}{gap.join(parts)}{bar}>"

    def read() -> OneCall:
        yield from tape.expect(token("tool", "call", "begin"))
        head = (yield from tape.until(token("tool", "sep"), most=_NAME_SIZE)).strip()
        if head == "function":
            head = (yield from tape.until("\n", most=_NAME_SIZE)).strip()
        name = tape.mark_name(head)
        arguments = yield from _maybe_fenced(tape)
        yield from tape.expect(token("tool", "call", "end"), skip=True)
        return RawCall(name, arguments)

    return read_section(tape, token("tool", "calls", "begin"), token("tool", "calls", "end"), read)


def _maybe_fenced(tape: TextTape) -> Steps[JsonObject]:
    yield from tape.skip_spaces()
    fenced = yield from tape.any_of("```json", "```")
    arguments = yield from tape.arguments()
    if fenced:
        yield from tape.expect("```", skip=True)
    return arguments


def _kimi(tape: TextTape) -> Reading:
    def read() -> OneCall:
        yield from tape.expect("<|tool_call_begin|>")
        id = yield from tape.until("<|tool_call_argument_begin|>", most=_NAME_SIZE)
        named = _KIMI_ID.fullmatch(id.strip())
        if named is None:
            raise NoCall
        name = tape.mark_name(named[1])
        arguments = yield from tape.arguments()
        yield from tape.expect("<|tool_call_end|>", skip=True)
        return RawCall(name, arguments)

    return read_section(tape, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", read)


def _mistral(tape: TextTape) -> Reading:
    """Read a list of calls, or the newer `name[ARGS]{…}`; neither has an end token."""
    yield from tape.expect("[TOOL_CALLS]")
    yield from tape.skip_spaces()
    if tape.ahead in ("[", "{"):
        calls = parse_calls((yield from tape.balanced_text()))
        tape.mark_name(calls[0].name)
        yield from tape.any_of("[/TOOL_CALLS]")
        return calls
    name = tape.mark_name((yield from tape.word()))
    if (yield from tape.accept("[CALL_ID]")):
        yield from tape.word()
    yield from tape.any_of("[ARGS]")
    return (RawCall(name, (yield from tape.arguments())),)


def _glm(tape: TextTape) -> Reading:
    """Read the name, then keys and values in turn; all values are text."""
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
        yield from tape.expect("<arg_value>", skip=True)
        tape.mark_name(name)
        value = yield from tape.value("</arg_value>", "<arg_key>", "</tool_call>")
        if key in arguments:
            raise NoCall
        arguments[key] = value
        yield from tape.skip_spaces()
    return (RawCall(tape.mark_name(name), arguments, typed=False),)


def _harmony(tape: TextTape) -> Reading:
    """Read a message whose header names a function as recipient; other messages are not calls."""
    yield from tape.any_of("<|start|>assistant", "<|channel|>commentary")
    header = yield from tape.until("<|message|>", most=_NAME_SIZE)
    recipient = _RECIPIENT.search(header)
    # The analysis channel is reasoning, not a call.
    if recipient is None or "<|channel|>analysis" in header:
        raise NoCall
    name = tape.mark_name(recipient[1])
    arguments = yield from tape.arguments()
    yield from tape.close("<|call|>", "<|end|>")
    return (RawCall(name, arguments),)


def _qwen_agent(tape: TextTape) -> Reading:
    yield from tape.expect("✿FUNCTION✿:")
    yield from tape.skip_spaces()
    name = tape.mark_name((yield from tape.word()))
    yield from tape.expect("✿ARGS✿:", skip=True)
    return (RawCall(name, (yield from tape.arguments())),)


def _gemma(tape: TextTape, opener: str, closer: str, quote: str) -> Reading:
    yield from tape.expect(opener)
    yield from tape.expect("call:", skip=True)
    name = tape.mark_name((yield from tape.word()))
    arguments = yield from _object(tape, quote, 0)
    yield from tape.close(closer)
    return (RawCall(name, arguments),)


def _object(tape: TextTape, quote: str, depth: int) -> Steps[JsonObject]:
    yield from tape.expect("{")
    result: JsonObject = {}
    yield from tape.skip_spaces()
    while not (yield from tape.accept("}")):
        if result:
            yield from tape.expect(",")
            yield from tape.skip_spaces()
        quoted = yield from tape.accept(quote)
        key = yield from tape.until(quote if quoted else ":", most=_KEY)
        if quoted:
            yield from tape.expect(":")
        elif not _WORD.fullmatch(key):
            raise NoCall
        if key in result:
            raise NoCall
        result[key] = yield from _value(tape, quote, depth)
        yield from tape.skip_spaces()
    return result


def _list(tape: TextTape, quote: str, depth: int) -> Steps[list[JsonValue]]:
    yield from tape.expect("[")
    result: list[JsonValue] = []
    yield from tape.skip_spaces()
    while not (yield from tape.accept("]")):
        if result:
            yield from tape.expect(",")
        result.append((yield from _value(tape, quote, depth)))
        yield from tape.skip_spaces()
    return result


def _value(tape: TextTape, quote: str, depth: int) -> Steps[JsonValue]:
    if depth > _MAX_DEPTH:
        raise NoCall
    yield from tape.skip_spaces()
    if (yield from tape.accept(quote)):
        return (yield from tape.until(quote))
    if tape.ahead == "{":
        return (yield from _object(tape, quote, depth + 1))
    if tape.ahead == "[":
        return (yield from _list(tape, quote, depth + 1))
    while True:
        match = _SCALAR.match(tape.text, tape.at)
        if match is None:
            raise NoCall
        if match.end() < len(tape.text) or tape.ended:
            tape.at = match.end()
            try:
                return parse_value(match[0])
            except UnreadableValue as error:
                raise NoCall from error
        yield ""


def _gemma_style(name: str, opener: str, closer: str, quote: str) -> CallStyle:
    return CallStyle(
        name,
        lambda tape: _gemma(tape, opener, closer, quote),
        openers=(opener,),
        closers=(closer,),
    )


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
    _gemma_style("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>"),
    _gemma_style("gemma4", "<|tool_call>", "<tool_call|>", '<|"|>'),
)
