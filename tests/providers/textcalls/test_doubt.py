"""The right call or none: near misses are reported to the model; examples and quotations stay
text."""

from __future__ import annotations

import json

import pytest

from hermes.core.messages import (
    AssistantMessage,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    user_says,
)
from hermes.core.prompt import Restarted
from tests.providers.asking import Heard
from tests.providers.textcalls.each import every
from tests.providers.textcalls.forms import WRITE, Call, Form
from tests.providers.textcalls.hearing import after, calls_in, hear, texts_in

HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
CODER = (
    "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n"
    "</tool_call>"
)
JSON = '{"name": "read_file", "arguments": {"path": "a"}}'
MISSES: dict[str, Call] = {
    "an unknown tool": ("rm_rf", {"path": "/"}),
    "an unknown argument": ("read_file", {"path": "a", "colour": "red"}),
    "without what is required": ("write_file", {"path": "a"}),
    "an object for a text": ("read_file", {"path": {"a": 1}}),
    "a list for a number": ("read_file", {"path": "a", "offset": [1]}),
    "words for a number": ("read_file", {"path": "a", "offset": "three"}),
    "half of a number": ("read_file", {"path": "a", "offset": 1.5}),
    "too small a number": ("read_file", {"path": "a", "offset": 0}),
    "not one of the choices": ("todo", {"items": [], "mode": "burn"}),
    "no such truth": ("terminal", {"command": "ls", "background": "perhaps"}),
}


def is_text(heard: Heard, text: str) -> bool:
    """Nothing is called and everything is said, in the stream as in the reply."""
    return (
        calls_in(heard) == []
        and heard.shown.strip() == text.strip() == "".join(texts_in(heard)).strip()
    )


def is_reported(heard: Heard, call: Call | None = None) -> bool:
    """Nothing is said, and the planner gets an unusable call or this one as it was written."""
    made = heard.whole.message.calls
    return (
        heard.shown.strip() == "".join(texts_in(heard)).strip() == ""
        and len(made) == 1
        and (bool(made[0].broken) or (made[0].name, made[0].arguments) == call)
    )


@every
async def test_a_near_miss_is_reported(form: Form) -> None:
    """In a style that looks like ordinary text, only if it names a tool that exists."""
    for miss, call in MISSES.items():
        if miss == "an object for a text" and not form.typed:
            continue
        text = form.write([call])
        for size in (len(text), 3):
            heard = await hear([text[at : at + size] for at in range(0, len(text), size)])
            if calls_in(heard):
                assert is_reported(heard, call), miss
            else:
                is_ordinary = form.plain or form.name == "tags"
                assert is_text(heard, text) and is_ordinary and miss == "an unknown tool", miss


@every
async def test_a_call_that_breaks_off_is_reported_or_text(form: Form) -> None:
    """Everywhere but where only marks are missing that mean nothing more. Text is what says too
    little to be taken for a call."""
    text = form.write([WRITE])
    for at in range(1, len(text)):
        heard = await hear([text[:at]])
        made = calls_in(heard) == [WRITE] or is_reported(heard)
        assert made or is_text(heard, text[:at]), text[:at]
        if not form.plain and '"content": "de' in text[:at]:
            assert made, text[:at]


@pytest.mark.parametrize(
    "text",
    [
        f"For example you could write:\n{HERMES}\nand so on.",
        f"Here is an example of a call:\n\n{HERMES}",
        f"You would write\n{HERMES}",
        f"The file contains:\n{HERMES}",
        f"Write `{HERMES}` to call it.",
        f'Write "{HERMES}" to call it.',
        f"Use {HERMES} to call it.",
        f"I see. You can use {HERMES}, which reads a file.",
        f"Like this:\n```\n{HERMES}\n```\nDone.",
        f"Like this:\n```xml\n{CODER}\n```",
        f"```\n{HERMES}\n```",
        f"~~~\n{HERMES}\n~~~\nis how it goes.",
        f"Here is an example: {CODER}",
        f"Zum Beispiel:\n{HERMES}",
        f"For example:\n```json\n{JSON}\n```",
        f"Here is the JSON you asked for:\n```json\n{JSON}\n```",
        f"I'll explain. A call looks like this:\n\n{JSON}",
        f"```json\n{JSON}\n```\nThis is what a call is.",
        f'{{"calls": [\n{JSON}\n]}}',
        f"[1, 2]\n{JSON}\n[3]",
        'For example:\nAction: read_file\nAction Input: {"path": "a"}',
        "Mention <tool_call> and [TOOL_CALLS] and <function= freely.",
        "The <tool_call> tag is old. Use <|python_tag|> now.",
        '{"name": "Alice", "arguments": {"path": "a"}}',
        '{"path": "a"}',
        "[link](https://x) and [x] and [read_file] too",
        "read_file is a tool, read_file(path) reads",
        "```python\nprint('hi')\n```",
        "```tool_code\nimport os\nread_file(path='a')\n```",
        "```tool_code\nread_file(path=open('x').read())\n```",
        "read_file(*paths)",
        "[read_file(path='a'), 3]",
        "<read_file>a.txt</read_file>",
        "<|start|>assistant<|channel|>analysis to=functions.read_file<|message|>"
        '{"path": "a"}<|call|>',
    ],
)
async def test_what_is_shown_quoted_or_mentioned_is_not_done(text: str) -> None:
    for pieces in ([text], list(text)):
        assert is_text(await hear(pieces), text)


@pytest.mark.parametrize(
    "text",
    [
        HERMES,
        f"Let me look.\n{HERMES}",
        f"Let me look: {HERMES}",
        f"Let me look.{HERMES}",
        f"Let me look{HERMES}",
        f"Let me look {HERMES}",
        f"Looking at the example file.\n{HERMES}",
        f"I would like to see it first.\n\n{HERMES}",
        f"I'll check the format of the file:\n{HERMES}",
        f"Reading the file now.\n{HERMES}",
        f"With `<tool_call>` it goes.\n{HERMES}",
        f"Code:\n```\nx = 1\n```\nNow I read it.\n{HERMES}",
        f"{HERMES}</tool_call>",
        f"{HERMES}<|im_end|>",
        f"I'll read it:\n```json\n{JSON}\n```\n",
        f"Let me read it.\n{JSON}",
        f"{HERMES} Done.",
        "Thought: I should read it.\nAction: read_file\nAction Input: a",
        'Thought: x\nAction: read_file\nAction Input: {"path": "a"}\nObservation: It says: '
        '42\nThought: y\nAction: terminal\nAction Input: {"command": "ls"}',
        "<tool_call>{'name': 'read_file', 'arguments': {'path': 'a'}}</tool_call>",
        '<tool_call>{"name": "functions.read_file", "arguments": {"path": "a"}}</tool_call>',
        '<tool_call>{"name": "read_file", "arguments": {"path": "a", "limit": null}}</tool_call>',
        'read_file("a")',
        "[read_file(path='''a''')]",
        '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a"}}]',
        '{"tool_calls": [{"id": "x", "type": "function", "function": {"name": "read_file",'
        ' "arguments": "{\\"path\\": \\"a\\"}"}}]}',
        '{"action": "read_file", "action_input": {"path": "a"}}',
    ],
)
async def test_what_is_meant_is_done(text: str) -> None:
    for pieces in ([text], list(text)):
        heard = await hear(pieces)
        assert calls_in(heard) == [("read_file", {"path": "a"})]
        assert "tool_call>" not in heard.shown.replace("`<tool_call>`", "")
        assert "Observation" not in heard.shown


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "read_file", "arguments": {"path": "a"}</tool_call>',
        '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}}</tool_call>',
        '<tool_call>{"name": "read_file", "arguments": {"path": "a",},}</tool_call>',
        '<tool_call>\n```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```</tool_call>',
        '<function_call>{"name": "read_file", "arguments": {"path": "a"}</function_call>',
        '<tool_calls>[{"name": "read_file", "arguments": {"path": "a"}}</tool_calls>',
        'I look.\n<tool_call>{"name": "read_file", "arguments": {"path": "a"}</tool_call>',
    ],
)
async def test_a_slip_in_the_brackets_is_repaired(text: str) -> None:
    for pieces in ([text], list(text)):
        heard = await hear(pieces)
        assert calls_in(heard) == [("read_file", {"path": "a"})], heard.whole
        assert not heard.whole.message.calls[0].broken and heard.shown.strip() in ("", "I look.")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            '<tool_call>{"name": "read_file", "arguments": {"path": "a"}, "name": "todo"}'
            "</tool_call>",
            "read_file",
        ),
        ('<tool_call>{"name": "read_file", "arguments": {"path": NaN}}</tool_call>', "read_file"),
        ('<tool_call>{"name": "read_file", "arguments": "path"}</tool_call>', "read_file"),
        ('<tool_call>{"name": "read_file", "arguments": {"path": "a', "read_file"),
        ("<tool_call>{name: read_file, path: a}</tool_call>", "unknown"),
        ('{"name": "read_file", "arguments": {"path": "a"', "read_file"),
        ('```json\n{"name": "read_file", "arguments": {"path": "a}}\n```', "read_file"),
        ("<tool_call></tool_call>", "unknown"),
        ("<tool_call>", "unknown"),
        ("[TOOL_CALLS]", "unknown"),
        ("<|tool_calls_section_begin|><|tool_calls_section_end|>", "unknown"),
        ('<function=read_file>{"path": "a"</function>', "read_file"),
        ('Thought: x\nAction: read_file\nAction Input: {"path": "a', "read_file"),
    ],
)
async def test_what_cannot_be_read_is_reported_under_the_name_it_gives(
    text: str, name: str
) -> None:
    for pieces in ([text], list(text)):
        heard = await hear(pieces)
        (call,) = heard.whole.message.calls
        assert (call.name, call.arguments) == (name, {}) and call.broken
        assert heard.shown.strip() in ("", "Thought: x")


@pytest.mark.parametrize("name", ["fly", "rm_rf"])
async def test_an_unknown_tool_in_an_action_is_reported(name: str) -> None:
    heard = await hear([f'Thought: x\nAction: {name}\nAction Input: {{"to": "a"}}'])
    assert calls_in(heard) == [(name, {"to": "a"})] and heard.shown == "Thought: x\n"


@pytest.mark.parametrize(
    "text",
    [
        f"Use {HERMES[:-14]}</tool_call> to call it.",
        f"For example you could write:\n{HERMES[:-14]}</tool_call>",
        f"{HERMES[:-14]}</tool_call> is how a call looks.",
        f"```\n{HERMES[:-14]}</tool_call>\n```",
        '{"name": "Alice", "arguments": {"path": "a"',
        '{"name": "read_file", "size": 3, "arguments": {}, "mode": "r"}',
        "Action: Buy milk.\nAction Input is not needed.",
    ],
)
async def test_what_is_unreadable_and_not_meant_as_a_call_is_text(text: str) -> None:
    for pieces in ([text], list(text)):
        assert is_text(await hear(pieces), text)


async def test_a_call_inside_an_argument_is_not_run() -> None:
    """Also when the call around it cannot be read."""
    inner = HERMES.replace("\n", "\\n").replace('"', '\\"')
    start = '<tool_call>{"name": "write_file", "arguments": {"path": "b", "content": '
    good = await hear([f'{start}"{inner}"}}}}</tool_call>'])
    assert calls_in(good) == [("write_file", {"path": "b", "content": HERMES})]
    assert is_reported(await hear([f"{start}{HERMES}</tool_call>"]))
    assert is_reported(await hear([CODER.replace("\na\n", f"\n{CODER}\n")]))


async def test_an_argument_that_holds_the_end_of_a_call_is_reported() -> None:
    text = (
        "<tool_call>\n<function=write_file>\n<parameter=path>\nb\n</parameter>\n"
        "<parameter=content>\nx\n</parameter>\n</function>\n</tool_call>\nmore\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    heard = await hear(list(text))
    assert is_reported(heard) and Restarted() in heard.deltas
    said = await hear([f"I write it.\n{text}"])
    assert said.shown == "I write it.\n" and said.whole.message.calls[0].broken


async def test_a_call_that_somebody_else_wrote_is_a_quotation() -> None:
    """A page or a file can hold mark-up; a model that repeats it calls nothing."""
    call = ToolCall(id="a", name="read_file", arguments={"path": "b"})
    page = ToolResult(call_id="a", name="read_file", parts=(Text(text=f"Hi!\n{HERMES}\nBye"),))
    told = (
        user_says("read b"),
        AssistantMessage(parts=(call,), stop="calls"),
        ToolMessage(results=(page,)),
    )
    text = f"It says hi.\n{HERMES}"
    heard = await hear([text], prompt=after(*told))
    assert is_text(heard, text)
    assert is_text(await hear([HERMES], prompt=after(user_says(f"Say {HERMES}"))), HERMES)
    assert calls_in(await hear([HERMES], prompt=after(user_says("read a"))))


async def test_what_turns_out_to_be_a_thought_calls_nothing() -> None:
    text = f"I could look.\n{HERMES}\nNo, better not.</think>\n\nHello!"
    heard = await hear(list(text))
    assert calls_in(heard) == [] and heard.shown == text


@pytest.mark.parametrize("stop", ["length", "cut"])
async def test_a_call_that_is_cut_off_is_broken_and_said_nowhere(stop: StopReason) -> None:
    for text in (HERMES[:60], CODER[:60], '[TOOL_CALLS]read_file[ARGS]{"pa'):
        heard = await hear(list("On it.\n" + text), stop=stop)
        (call,) = heard.whole.message.calls
        assert (call.name, call.arguments) == ("read_file", {}) and call.broken
        assert heard.shown == "On it.\n"
    half = await hear(["I say <tool_c"], stop=stop)
    assert is_text(half, "I say <tool_c")


async def test_no_call_of_a_reply_whose_connection_was_lost_is_run() -> None:
    heard = await hear([f"{HERMES}\nAnd then"], stop="cut")
    (call,) = heard.whole.message.calls
    assert call.broken and heard.whole.message.stop == "cut"
    kept = await hear([f"{HERMES}\nAnd then"], stop="length")
    assert calls_in(kept) == [("read_file", {"path": "a"})]
    assert kept.whole.message.stop == "length" and not kept.whole.message.calls[0].broken


async def test_one_wrong_call_does_not_keep_the_others_from_running() -> None:
    wrong = HERMES.replace("read_file", "fly")
    heard = await hear([f"{HERMES}\n{wrong}\n{HERMES}"])
    right = ("read_file", {"path": "a"})
    assert calls_in(heard) == [right, ("fly", {"path": "a"}), right]
    assert heard.shown == ""


async def test_text_becomes_what_the_schema_asks_for_only_in_styles_without_types() -> None:
    coder = CODER.replace("</function>", "<parameter=offset>\n3\n</parameter>\n</function>")
    assert calls_in(await hear([coder])) == [("read_file", {"path": "a", "offset": 3})]
    typed = HERMES.replace('"a"', '"a", "offset": "3"')
    assert is_reported(await hear([typed]), ("read_file", {"path": "a", "offset": "3"}))
    number = CODER.replace("\na\n", "\n12\n")
    assert calls_in(await hear([number])) == [("read_file", {"path": "12"})]
    whole = HERMES.replace('"a"', '"a", "offset": 3.0')
    assert json.dumps(calls_in(await hear([whole]))[0][1]) == '{"path": "a", "offset": 3}'


async def test_a_known_style_is_still_held_to_examples() -> None:
    text = f"For example:\n```json\n{JSON}\n```"
    assert is_text(await hear([text], style="fenced"), text)
    assert calls_in(await hear([f"Fine.\n```json\n{JSON}\n```"], style="fenced")) == [
        ("read_file", {"path": "a"})
    ]


async def test_prose_passes_without_delay() -> None:
    words = ["I", " read", " the", " file", ".\n\n", "read", " it", " [", "1", "]", " and", " go"]
    heard = await hear(words)
    shown = [delta.text for delta in heard.deltas if hasattr(delta, "text")]
    assert "".join(shown) == "".join(words)
    # Held until the next piece: "read" at the start of a line and a bracket, nothing else.
    assert shown == [
        "I",
        " read",
        " the",
        " file",
        ".\n\n",
        "read it",
        " ",
        "[1",
        "]",
        " and",
        " go",
    ]
