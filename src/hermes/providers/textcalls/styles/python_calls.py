"""Styles with Python syntax: Llama 4, LFM, OLMo, and Gemma's fences."""

from __future__ import annotations

import ast
import re

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.parsing import CallStyle, NoCall, RawCall, Reading, TextTape
from hermes.providers.textcalls.validation import OfferedTools, UnreadableValue, literal_of, tree_of

_PRINT = re.compile(r"print\((.*)\)", re.DOTALL)


def parse_python_calls(text: str, offer: OfferedTools) -> tuple[RawCall, ...]:
    """The calls in an expression: one, a list, or one inside `print`."""
    printed = _PRINT.fullmatch(text.strip())
    try:
        tree = tree_of(printed[1] if printed else text)
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        found = tuple(_raw(node, offer) for node in nodes)
    except UnreadableValue as error:
        raise NoCall from error
    if not found:
        raise NoCall
    return found


def _raw(node: ast.expr, offer: OfferedTools) -> RawCall:
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


def _between(tape: TextTape, opener: str, closer: str) -> Reading:
    """A list or a call between two tokens."""
    yield from tape.expect(opener)
    yield from tape.skip_spaces()
    start = tape.at
    if tape.ahead != "[":
        tape.mark_name(tape.offer.strip_namespace((yield from tape.word())))
    yield from tape.balanced_text(python=True)
    found = parse_python_calls(tape.text[start : tape.at], tape.offer)
    tape.mark_name(found[0].name)
    yield from tape.skip_spaces()
    if not (yield from tape.accept(closer)) and not (tape.ended and not tape.ahead):
        raise NoCall
    return found


def _lines(tape: TextTape) -> Reading:
    """One call per line between two tags."""
    yield from tape.expect("<function_calls>")
    found: list[RawCall] = []
    while True:
        yield from tape.skip_spaces()
        if found and (yield from tape.accept("</function_calls>")):
            return tuple(found)
        start = tape.at
        tape.mark_name(tape.offer.strip_namespace((yield from tape.word())))
        yield from tape.balanced_text(python=True)
        found += parse_python_calls(tape.text[start : tape.at], tape.offer)


def _list(tape: TextTape) -> Reading:
    """A bare `[f(a=1), g()]`; the first name decides whether to wait for the rest."""
    start = tape.at
    yield from tape.expect("[")
    yield from tape.skip_spaces()
    yield from tape.tool_name()
    if not (yield from tape.accept("(")):
        raise NoCall
    tape.at = start
    return parse_python_calls((yield from tape.balanced_text(python=True)), tape.offer)


def _bare(tape: TextTape) -> Reading:
    """`f(a=1)` on lines of its own."""
    start = tape.at
    yield from tape.tool_name()
    yield from tape.balanced_text(python=True)
    return parse_python_calls(tape.text[start : tape.at], tape.offer)


def _tokens(name: str, opener: str, closer: str) -> CallStyle:
    return CallStyle(
        name,
        lambda tape: _between(tape, opener, closer),
        openers=(opener,),
        closers=(closer,),
    )


STYLES = (
    _tokens("lfm", "<|tool_call_start|>", "<|tool_call_end|>"),
    _tokens("llama4", "<|python_start|>", "<|python_end|>"),
    CallStyle("olmo", _lines, openers=("<function_calls>",), closers=("</function_calls>",)),
    CallStyle("pythonic", _list, openers=("[",), line=True, marked=False),
    CallStyle("python", _bare, tool_openers=("{}(",), line=True, marked=False),
)
