"""Styles with Python syntax: Llama 4, LFM, OLMo, and Gemma's fences."""

from __future__ import annotations

import ast
import re

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.literals import Unreadable, literal_of, tree_of
from hermes.providers.textcalls.offer import Offer
from hermes.providers.textcalls.style import Style
from hermes.providers.textcalls.tape import NoCall, Raw, Reading, Tape

_PRINT = re.compile(r"print\((.*)\)", re.DOTALL)


def raws_in_python(text: str, offer: Offer) -> tuple[Raw, ...]:
    """The calls in an expression: one, a list, or one inside `print`."""
    printed = _PRINT.fullmatch(text.strip())
    try:
        tree = tree_of(printed[1] if printed else text)
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        found = tuple(_raw(node, offer) for node in nodes)
    except Unreadable as error:
        raise NoCall from error
    if not found:
        raise NoCall
    return found


def _raw(node: ast.expr, offer: Offer) -> Raw:
    if not isinstance(node, ast.Call):
        raise NoCall
    name = offer.own(ast.unparse(node.func))
    arguments: JsonObject = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise NoCall
        arguments[keyword.arg] = literal_of(keyword.value)
    if node.args:
        # Schemas do not define a parameter order, so a positional value is accepted only for the
        # sole required parameter.
        sole = offer.sole(name) if offer.knows(name) else ""
        if len(node.args) > 1 or not sole or sole in arguments:
            raise NoCall
        arguments[sole] = literal_of(node.args[0])
    return Raw(name, arguments)


def _between(tape: Tape, opener: str, closer: str) -> Reading:
    """A list or a call between two tokens."""
    yield from tape.expect(opener)
    yield from tape.spaces()
    start = tape.at
    if tape.ahead != "[":
        tape.name(tape.offer.own((yield from tape.word())))
    yield from tape.balanced(python=True)
    found = raws_in_python(tape.text[start : tape.at], tape.offer)
    tape.name(found[0].name)
    yield from tape.spaces()
    if not (yield from tape.has(closer)) and not (tape.ended and not tape.ahead):
        raise NoCall
    return found


def _lines(tape: Tape) -> Reading:
    """One call per line between two tags."""
    yield from tape.expect("<function_calls>")
    found: list[Raw] = []
    while True:
        yield from tape.spaces()
        if found and (yield from tape.has("</function_calls>")):
            return tuple(found)
        start = tape.at
        tape.name(tape.offer.own((yield from tape.word())))
        yield from tape.balanced(python=True)
        found += raws_in_python(tape.text[start : tape.at], tape.offer)


def _list(tape: Tape) -> Reading:
    """A bare `[f(a=1), g()]`; the first name decides whether to wait for the rest."""
    start = tape.at
    yield from tape.expect("[")
    yield from tape.spaces()
    yield from tape.tool()
    if not (yield from tape.has("(")):
        raise NoCall
    tape.at = start
    return raws_in_python((yield from tape.balanced(python=True)), tape.offer)


def _bare(tape: Tape) -> Reading:
    """`f(a=1)` on lines of its own."""
    start = tape.at
    yield from tape.tool()
    yield from tape.balanced(python=True)
    return raws_in_python(tape.text[start : tape.at], tape.offer)


def _tokens(name: str, opener: str, closer: str) -> Style:
    return Style(
        name,
        lambda tape: _between(tape, opener, closer),
        openers=(opener,),
        closers=(closer,),
    )


STYLES = (
    _tokens("lfm", "<|tool_call_start|>", "<|tool_call_end|>"),
    _tokens("llama4", "<|python_start|>", "<|python_end|>"),
    Style("olmo", _lines, openers=("<function_calls>",), closers=("</function_calls>",)),
    Style("pythonic", _list, openers=("[",), line=True, marked=False),
    Style("python", _bare, tool_openers=("{}(",), line=True, marked=False),
)
