"""Styles that look like ordinary text: Python calls, bare JSON, fences, "Action:" lines, custom
tags."""

from __future__ import annotations

import ast
import re

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.parsing import (
    FIRST_KEYS,
    NAMES,
    CallStyle,
    NoCall,
    RawCall,
    Reading,
    Steps,
    TextTape,
    parse_calls,
)
from hermes.providers.textcalls.styles.tags import strip_value
from hermes.providers.textcalls.validation import OfferedTools, UnreadableValue, literal_of, tree_of

_PRINT = re.compile(r"print\((.*)\)", re.DOTALL)


def _parse_python(text: str, offer: OfferedTools) -> tuple[RawCall, ...]:
    """Parse the calls in an expression: one, a list, or one inside `print`."""
    printed = _PRINT.fullmatch(text.strip())
    try:
        tree = tree_of(printed[1] if printed else text)
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        calls = tuple(_raw_of_call(node, offer) for node in nodes)
    except UnreadableValue as error:
        raise NoCall from error
    if not calls:
        raise NoCall
    return calls


def _raw_of_call(node: ast.expr, offer: OfferedTools) -> RawCall:
    if not isinstance(node, ast.Call):
        raise NoCall
    name = offer.strip_namespace(ast.unparse(node.func))
    arguments: JsonObject = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise NoCall
        arguments[keyword.arg] = literal_of(keyword.value)
    if node.args:
        # Schemas do not define a parameter order, so a positional value is accepted only for the
        # sole required parameter.
        sole = offer.sole_parameter(name) if offer.knows(name) else ""
        if len(node.args) > 1 or not sole or sole in arguments:
            raise NoCall
        arguments[sole] = literal_of(node.args[0])
    return RawCall(name, arguments)


def _python_between(tape: TextTape, opener: str, closer: str) -> Reading:
    """Read a list or a call between two tokens."""
    yield from tape.expect(opener)
    yield from tape.skip_spaces()
    start = tape.at
    if tape.ahead != "[":
        tape.mark_name((yield from tape.word()))
    yield from tape.balanced_text(python=True)
    calls = _parse_python(tape.text[start : tape.at], tape.offer)
    tape.mark_name(calls[0].name)
    yield from tape.close(closer)
    return calls


def _python_lines(tape: TextTape) -> Reading:
    """Read one call per line between two tags."""
    yield from tape.expect("<function_calls>")
    calls: list[RawCall] = []
    while True:
        yield from tape.skip_spaces()
        if calls and (yield from tape.accept("</function_calls>")):
            return tuple(calls)
        start = tape.at
        tape.mark_name((yield from tape.word()))
        yield from tape.balanced_text(python=True)
        calls += _parse_python(tape.text[start : tape.at], tape.offer)


def _python_list(tape: TextTape) -> Reading:
    """Read a bare `[f(a=1), g()]`; the first name decides whether to wait for the rest."""
    start = tape.at
    yield from tape.expect("[")
    yield from tape.skip_spaces()
    yield from tape.tool_name()
    yield from tape.expect("(")
    tape.at = start
    return _parse_python((yield from tape.balanced_text(python=True)), tape.offer)


def _python_line(tape: TextTape) -> Reading:
    """Read `f(a=1)` on lines of its own."""
    start = tape.at
    yield from tape.tool_name()
    yield from tape.balanced_text(python=True)
    return _parse_python(tape.text[start : tape.at], tape.offer)


def _python_style(name: str, opener: str, closer: str) -> CallStyle:
    return CallStyle(
        name,
        lambda tape: _python_between(tape, opener, closer),
        openers=(opener,),
        closers=(closer,),
    )


_QUOTED = re.compile(r"""["']([A-Za-z_]{1,20})["']""")
_OPEN_KEY = re.compile(r"""["'][A-Za-z_]{0,20}["']?""")
_CALLS_IN_FENCE = ("tool_code", "tool_call", "tool_calls", "function_call")
_DATA_IN_FENCE = ("json", "python", "py", "")
_LANGUAGE = re.compile(r"[ \t]*([a-z_]{0,20})[ \t]*\r?\n")
_OPEN_LANGUAGE = re.compile(r"[ \t]*[a-z_]{0,20}[ \t]*\r?")
_FENCE = "```"


def _json(tape: TextTape, *, any_name: bool = False) -> Reading:
    """Read one or more objects or lists. With `any_name`, the tools need not exist."""
    calls: list[RawCall] = []
    while True:
        start = tape.at
        if not any_name:
            yield from _first_key(tape)
            tape.at = start
        found = parse_calls((yield from tape.balanced_text()), strict=True)
        calls += found if any_name else _require_known(tape, found)
        end = tape.at
        yield from tape.skip_spaces()
        if tape.ahead in (";", ","):
            tape.at += 1
            yield from tape.skip_spaces()
        if tape.ahead not in ("{", "["):
            tape.at = end
            return tuple(calls)


def _require_known(tape: TextTape, raws: tuple[RawCall, ...]) -> tuple[RawCall, ...]:
    if not all(tape.offer.knows(tape.offer.strip_namespace(raw.name)) for raw in raws):
        raise NoCall
    return raws


def _first_key(tape: TextTape) -> Steps[None]:
    """Reject most JSON early, by its first key or by an unknown tool name."""
    while tape.ahead in ("{", "["):
        tape.at += 1
        yield from tape.skip_spaces()
    while True:
        match = _QUOTED.match(tape.text, tape.at)
        if match is not None:
            break
        rest = tape.text[tape.at : tape.at + 25]
        if tape.ended or not (_OPEN_KEY.fullmatch(rest) or not rest):
            raise NoCall
        yield ""
    if match[1] not in FIRST_KEYS:
        raise NoCall
    tape.at = match.end()
    yield from tape.expect(":", skip=True)
    yield from tape.skip_spaces()
    if match[1] in NAMES and tape.ahead in ('"', "'"):
        tape.at += 1
        yield from tape.tool_name()


def _fenced(tape: TextTape, languages: tuple[str, ...]) -> Reading:
    language = yield from _language(tape)
    if language not in languages:
        raise NoCall
    found = yield from _in_fence(tape, any_name=language in _CALLS_IN_FENCE)
    yield from tape.expect(_FENCE, skip=True)
    return found


def _language(tape: TextTape) -> Steps[str]:
    yield from tape.expect(_FENCE)
    while True:
        found = _LANGUAGE.match(tape.text, tape.at)
        if found is not None:
            tape.at = found.end()
            return found[1]
        if tape.ended or not _OPEN_LANGUAGE.fullmatch(tape.text, tape.at):
            raise NoCall
        yield ""


def _in_fence(tape: TextTape, *, any_name: bool) -> Reading:
    """Read JSON, or lines with one call each. With `any_name`, the tools need not exist."""
    yield from tape.skip_spaces()
    if tape.ahead == "{":
        return (yield from _json(tape, any_name=any_name))
    calls: list[RawCall] = []
    while True:
        start = tape.at
        listed = yield from tape.accept("[")
        if listed:
            yield from tape.skip_spaces()
            if tape.ahead == "{":
                tape.at = start
                return (yield from _json(tape, any_name=any_name))
        printed = not listed and (yield from tape.accept("print("))
        yield from tape.word() if any_name else tape.tool_name()
        if listed or printed:
            tape.at = start + (0 if listed else len("print"))
        yield from tape.balanced_text(python=True)
        calls += _parse_python(tape.text[start : tape.at], tape.offer)
        yield from tape.skip_spaces()
        if tape.ahead == "`" or tape.finished:
            return tuple(calls)


def _react(tape: TextTape) -> Reading:
    """Read Thought, Action, Action Input; older Command models put a fence around it."""
    yield from tape.expect("Action:")
    yield from tape.skip_spaces()
    if (yield from tape.accept("```json")):
        yield from tape.skip_spaces()
        found = _require_known(tape, parse_calls((yield from tape.balanced_text()), strict=True))
        yield from tape.expect(_FENCE, skip=True)
        return found
    ticked = yield from tape.accept("`")
    word = yield from tape.word()
    if ticked:
        yield from tape.expect("`")
    yield from tape.expect("Action Input:", skip=True)
    name = tape.mark_name(word)
    yield from tape.skip_spaces()
    fenced = yield from tape.any_of("```json", _FENCE)
    yield from tape.skip_spaces()
    typed = tape.ahead == "{"
    if typed:
        arguments = yield from tape.arguments()
    else:
        arguments = yield from _one_line(tape, name)
    if fenced:
        yield from tape.expect(_FENCE, skip=True)
    return (RawCall(name, arguments, typed=typed),)


def _one_line(tape: TextTape, name: str) -> Steps[JsonObject]:
    """Read the rest of the line as the only argument of the tool."""
    sole = tape.offer.sole_parameter(name) if tape.offer.knows(name) else ""
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


def _own_tags(tape: TextTape) -> Reading:
    """Read `<tool><parameter>…</parameter></tool>`."""
    yield from tape.expect("<")
    name = tape.mark_name((yield from tape.tool_name()))
    yield from tape.expect(">")
    closer = f"</{name}>"
    known = tape.offer.parameters(name)
    openers = tuple(f"<{key}>" for key in known)
    arguments: JsonObject = {}
    while True:
        yield from tape.skip_spaces()
        if (yield from tape.accept(closer)):
            return (RawCall(name, arguments, typed=False),)
        opener = yield from tape.any_of(*openers)
        key = opener[1:-1]
        if not opener or key in arguments:
            raise NoCall
        text = yield from tape.value(f"</{key}>", closer, *openers)
        arguments[key] = strip_value(text)


def _functionary(tape: TextTape) -> Reading:
    yield from tape.expect(">>>")
    name = tape.mark_name((yield from tape.tool_name()))
    yield from tape.expect("\n")
    return (RawCall(name, (yield from tape.arguments())),)


STYLES = (
    _python_style("lfm", "<|tool_call_start|>", "<|tool_call_end|>"),
    _python_style("llama4", "<|python_start|>", "<|python_end|>"),
    CallStyle("olmo", _python_lines, openers=("<function_calls>",), closers=("</function_calls>",)),
    CallStyle("pythonic", _python_list, openers=("[",), line=True, marked=False),
    CallStyle("python", _python_line, tool_openers=("{}(",), line=True, marked=False),
    # The language marks the fence as a call.
    CallStyle("gemma", lambda tape: _fenced(tape, _CALLS_IN_FENCE), openers=(_FENCE,), line=True),
    CallStyle(
        "fenced",
        lambda tape: _fenced(tape, (*_CALLS_IN_FENCE, *_DATA_IN_FENCE)),
        openers=(_FENCE,),
        line=True,
        marked=False,
    ),
    CallStyle("react", _react, openers=("Action:",), line=True, ends="Observation:"),
    CallStyle("functionary", _functionary, openers=(">>>",), line=True, marked=False),
    CallStyle("tags", _own_tags, tool_openers=("<{}>",), line=True),
    CallStyle("json", _json, openers=("{", "["), line=True, marked=False),
)
