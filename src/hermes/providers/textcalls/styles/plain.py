"""Styles that look like ordinary text: bare JSON, fences, "Action:" lines, custom tags."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.shapes import FIRST_KEYS, NAMES, arguments_in, raws_in
from hermes.providers.textcalls.style import Style
from hermes.providers.textcalls.styles.python_calls import raws_in_python
from hermes.providers.textcalls.styles.xml_tags import bare
from hermes.providers.textcalls.tape import NoCall, Raw, Reading, Steps, Tape

_QUOTED = re.compile(r"""["']([A-Za-z_]{1,20})["']""")
_OPEN_KEY = re.compile(r"""["'][A-Za-z_]{0,20}["']?""")
_CALLS_IN_FENCE = ("tool_code", "tool_call", "tool_calls", "function_call")
_DATA_IN_FENCE = ("json", "python", "py", "")
_LANGUAGE = re.compile(r"[ \t]*([a-z_]{0,20})[ \t]*\r?\n")
_OPEN_LANGUAGE = re.compile(r"[ \t]*[a-z_]{0,20}[ \t]*\r?")
_FENCE = "```"


def _json(tape: Tape) -> Reading:
    """One or more objects or lists."""
    found: list[Raw] = []
    while True:
        start = tape.at
        yield from _first_key(tape)
        tape.at = start
        found += _require_known(tape, raws_in((yield from tape.balanced()), strict=True))
        end = tape.at
        yield from tape.spaces()
        if tape.ahead in (";", ","):
            tape.at += 1
            yield from tape.spaces()
        if tape.ahead not in ("{", "["):
            tape.at = end
            return tuple(found)


def _require_known(tape: Tape, raws: tuple[Raw, ...]) -> tuple[Raw, ...]:
    if not all(tape.offer.knows(tape.offer.own(raw.name)) for raw in raws):
        raise NoCall
    return raws


def _first_key(tape: Tape) -> Steps[None]:
    """Rejects most JSON early, by its first key or by an unknown tool name."""
    while tape.ahead in ("{", "["):
        tape.at += 1
        yield from tape.spaces()
    while True:
        found = _QUOTED.match(tape.text, tape.at)
        if found is not None:
            break
        rest = tape.text[tape.at : tape.at + 25]
        if tape.ended or not (_OPEN_KEY.fullmatch(rest) or not rest):
            raise NoCall
        yield ""
    if found[1] not in FIRST_KEYS:
        raise NoCall
    tape.at = found.end()
    yield from tape.spaces()
    yield from tape.expect(":")
    yield from tape.spaces()
    if found[1] in NAMES and tape.ahead in ('"', "'"):
        tape.at += 1
        yield from tape.tool()


def _fenced(tape: Tape) -> Reading:
    language = yield from _language(tape)
    if language not in (*_CALLS_IN_FENCE, *_DATA_IN_FENCE):
        raise NoCall
    found = yield from _in_fence(tape)
    yield from tape.spaces()
    yield from tape.expect(_FENCE)
    return found


def _marked_fence(tape: Tape) -> Reading:
    """A fence whose language marks it as a call."""
    language = yield from _language(tape)
    if language not in _CALLS_IN_FENCE:
        raise NoCall
    found = yield from _in_fence(tape)
    yield from tape.spaces()
    yield from tape.expect(_FENCE)
    return found


def _language(tape: Tape) -> Steps[str]:
    yield from tape.expect(_FENCE)
    while True:
        found = _LANGUAGE.match(tape.text, tape.at)
        if found is not None:
            tape.at = found.end()
            return found[1]
        if tape.ended or not _OPEN_LANGUAGE.fullmatch(tape.text, tape.at):
            raise NoCall
        yield ""


def _in_fence(tape: Tape) -> Reading:
    """JSON, or lines with one call each."""
    yield from tape.spaces()
    if tape.ahead == "{":
        return (yield from _json(tape))
    found: list[Raw] = []
    while True:
        start = tape.at
        listed = yield from tape.has("[")
        if listed:
            yield from tape.spaces()
            if tape.ahead == "{":
                tape.at = start
                return (yield from _json(tape))
        printed = not listed and (yield from tape.has("print("))
        yield from tape.tool()
        if listed or printed:
            tape.at = start + (0 if listed else len("print"))
        yield from tape.balanced(python=True)
        found += raws_in_python(tape.text[start : tape.at], tape.offer)
        yield from tape.spaces()
        if tape.ahead == "`" or (tape.ended and not tape.ahead):
            return tuple(found)


def _react(tape: Tape) -> Reading:
    """Thought, Action, Action Input; older Command models put a fence around it."""
    yield from tape.expect("Action:")
    yield from tape.spaces()
    if (yield from tape.has("```json")):
        yield from tape.spaces()
        found = _require_known(tape, raws_in((yield from tape.balanced()), strict=True))
        yield from tape.spaces()
        yield from tape.expect(_FENCE)
        return found
    ticked = yield from tape.has("`")
    name = tape.name((yield from tape.tool()))
    if ticked:
        yield from tape.expect("`")
    yield from tape.spaces()
    yield from tape.expect("Action Input:")
    yield from tape.spaces()
    fenced = yield from tape.any_of("```json", _FENCE)
    yield from tape.spaces()
    typed = tape.ahead == "{"
    if typed:
        arguments = arguments_in((yield from tape.balanced()))
    else:
        arguments = yield from _one_line(tape, name)
    if fenced:
        yield from tape.spaces()
        yield from tape.expect(_FENCE)
    return (Raw(name, arguments, typed=typed),)


def _one_line(tape: Tape, name: str) -> Steps[JsonObject]:
    """The rest of the line is the only argument of the tool."""
    sole = tape.offer.sole(name)
    if not sole:
        raise NoCall
    while "\n" not in tape.text[tape.at :] and not tape.ended:
        yield "\n"
    line = tape.text[tape.at :].partition("\n")[0]
    tape.at += len(line)
    text = line.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if not text:
        raise NoCall
    return {sole: text}


def _own_tags(tape: Tape) -> Reading:
    """`<tool><parameter>…</parameter></tool>`."""
    yield from tape.expect("<")
    name = tape.name((yield from tape.tool()))
    yield from tape.expect(">")
    closer = f"</{name}>"
    known = tape.offer.parameters(name)
    openers = tuple(f"<{key}>" for key in known)
    arguments: JsonObject = {}
    while True:
        yield from tape.spaces()
        if (yield from tape.has(closer)):
            return (Raw(name, arguments, typed=False),)
        opener = yield from tape.any_of(*openers)
        key = opener[1:-1]
        if not opener or key in arguments:
            raise NoCall
        text = yield from tape.value(f"</{key}>", closer, *openers)
        arguments[key] = bare(text)


def _functionary(tape: Tape) -> Reading:
    yield from tape.expect(">>>")
    name = tape.name((yield from tape.tool()))
    yield from tape.expect("\n")
    yield from tape.spaces()
    return (Raw(name, arguments_in((yield from tape.balanced()))),)


STYLES = (
    Style("gemma", _marked_fence, openers=(_FENCE,), line=True),
    Style("fenced", _fenced, openers=(_FENCE,), line=True, marked=False),
    Style("react", _react, openers=("Action:",), line=True, ends="Observation:"),
    Style("functionary", _functionary, openers=(">>>",), line=True, marked=False),
    Style("tags", _own_tags, tool_openers=("<{}>",), line=True),
    Style("json", _json, openers=("{", "["), line=True, marked=False),
)
