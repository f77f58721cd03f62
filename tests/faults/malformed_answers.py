"""Answers of models that go wrong in every known way: native calls, and calls written as text.

`USABLE` answers are clear all the same: the call is run as it was meant. `UNUSABLE` ones are never
run: the model is asked again or told why. Neither is ever shown as an answer.
"""

from __future__ import annotations

import json

from hermes.testing.steps import (
    ScriptedCall,
    Step,
    call,
    calls_cut_short,
    calls_many,
    calls_raw,
    says,
)
from tests.faults.ground import CONTENT, RIGHT

WRITE = "write_file"
TEXT = json.dumps(RIGHT)
CALL = json.dumps({"name": WRITE, "arguments": RIGHT}, ensure_ascii=False)
LITERAL = f"'out/right.txt', 'content': {CONTENT!r}"

UNUSABLE_ARGUMENTS = {
    "nothing": "",
    "null": "null",
    "a brace": "{",
    "half a key": '{"pat',
    "half a value": '{"path": "out/ri',
    "no end": '{"path": "out/right.txt", "content": "All"',
    "a list": "[]",
    "a string": '"out/right.txt"',
    "a number": "7",
    "another quote": "{'path': 'out/x', 'content': 'y'}",
    "no number": '{"path": NaN}',
    "too deep": "[" * 5_000,
    "other types": '{"path": {"a": 1}, "content": ["x"]}',
    "too little": '{"path": "out/x"}',
    "two different ones": '{"path": "out/x", "content": "y"}{"path": "out/z", "content": "y"}',
    "words": "I write the file out/x now.",
}
USABLE_ARGUMENTS = {
    "a fence": f"```json\n{TEXT}\n```",
    "a comma too many": TEXT[:-1] + ",}",
    "twice the same": TEXT + TEXT,
    "as a string": json.dumps(TEXT),
    "space around it": f"\n\t {TEXT} \n",
    "escapes": json.dumps(RIGHT, ensure_ascii=True),
    "raw letters": json.dumps(RIGHT, ensure_ascii=False),
}

USABLE_TEXTS = {
    "hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "hermes, a brace too few": f"<tool_call>\n{CALL[:-1]}\n</tool_call>",
    "hermes, two braces too few": f"<tool_call>{CALL[:-2]}</tool_call>",
    "hermes, a brace too many": f"<tool_call>{CALL}}}</tool_call>",
    "hermes, commas": f"<tool_call>{CALL[:-2]},}},}}</tool_call>",
    "hermes, in a fence": f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
    "hermes, no end": f"<tool_call>\n{CALL}",
    "hermes, python quotes": (
        f"<tool_call>{{'name': 'write_file', 'arguments': {{'path': {LITERAL}}}}}</tool_call>"
    ),
    "hermes, a namespace": f"<tool_call>{CALL.replace(WRITE, 'functions.write_file')}</tool_call>",
    "hermes, another case": f"<tool_call>{CALL.replace(WRITE, 'Write-File')}</tool_call>",
    "hermes, a string": (
        f"<tool_call>{json.dumps({'name': WRITE, 'arguments': TEXT})}</tool_call>"
    ),
    "after words": f"I write it now.\n<tool_call>\n{CALL}\n</tool_call>",
    "bare JSON": CALL,
    "fenced JSON": f"```json\n{CALL}\n```",
    "elements": (
        f"<tool_call>\n<function={WRITE}>\n<parameter=path>\nout/right.txt\n</parameter>\n"
        f"<parameter=content>\n{CONTENT}\n</parameter>\n</function>\n</tool_call>"
    ),
    "python": f"{WRITE}(path='out/right.txt', content={CONTENT!r})",
    "action": f"Action: {WRITE}\nAction Input: {json.dumps(RIGHT, ensure_ascii=False)}",
    "mistral": f"[TOOL_CALLS][{CALL}]",
    "kimi": (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{WRITE}:0"
        f"<|tool_call_argument_begin|>{TEXT}<|tool_call_end|><|tool_calls_section_end|>"
    ),
}
UNUSABLE_TEXTS = {
    "an unknown tool": f"<tool_call>{CALL.replace(WRITE, 'fly_away')}</tool_call>",
    "an unknown tool, after words": f"I fly.\n<tool_call>{CALL.replace(WRITE, 'fly')}</tool_call>",
    "an unknown tool in an action": 'Action: fly\nAction Input: {"to": "the moon"}',
    "an unknown tool in elements": '<invoke name="fly"><parameter name="to">x</parameter></invoke>',
    "no name": f'<tool_call>{{"arguments": {TEXT}}}</tool_call>',
    "two names": '<tool_call>{"name": "write_file", "arguments": {}, "name": "todo"}</tool_call>',
    "keys without quotes": "<tool_call>{name: write_file, arguments: {path: out/x}}</tool_call>",
    "half a string": '<tool_call>{"name": "write_file", "arguments": {"path": "out/ri',
    "half a string, closed": '<tool_call>{"name": "write_file", "arguments": {"pa</tool_call>',
    "an empty call": "<tool_call></tool_call>",
    "an opening token": "<tool_call>",
    "a list as arguments": '<tool_call>{"name": "write_file", "arguments": [1]}</tool_call>',
    "a number as arguments": '<tool_call>{"name": "write_file", "arguments": 7}</tool_call>',
    "words as arguments": '<tool_call>{"name": "write_file", "arguments": "out/x"}</tool_call>',
    "NaN": '<tool_call>{"name": "write_file", "arguments": {"path": NaN}}</tool_call>',
    "wrong types": '<tool_call>{"name": "write_file", "arguments": {"path": {}}}</tool_call>',
    "too few arguments": (
        '<tool_call>{"name": "write_file", "arguments": {"path": "out/x"}}</tool_call>'
    ),
    "words inside": "<tool_call>\n{I write the file out/x now}\n</tool_call>",
    "a call in an argument": (
        f'<tool_call>{{"name": "write_file", "arguments": {{"path": "b", "content": '
        f"<tool_call>{CALL}</tool_call></tool_call>"
    ),
    "elements, an unknown one": (
        f"<tool_call>\n<function={WRITE}>\n<parameter=where>\nout/x\n</parameter>\n</function>\n"
        "</tool_call>"
    ),
    "elements, no end": f"<tool_call>\n<function={WRITE}>\n<parameter=path>\nout/x",
    "function, broken JSON": f'<function={WRITE}>{{"path": "out/x", "conte</function>',
    "deepseek, broken JSON": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_file\n"
        '```json\n{"path": "out/x\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "kimi, broken JSON": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0"
        '<|tool_call_argument_begin|>{"path": <|tool_call_end|><|tool_calls_section_end|>'
    ),
    "kimi, no calls": "<|tool_calls_section_begin|><|tool_calls_section_end|>",
    "mistral, broken JSON": '[TOOL_CALLS]write_file[ARGS]{"path": "out/x", "content": "y',
    "harmony, broken JSON": (
        "<|channel|>commentary to=functions.write_file<|message|>{'path: out/x}<|call|>"
    ),
    "bare JSON, no end": '{"name": "write_file", "arguments": {"path": "out/x", "content": "y',
    "fenced JSON, broken": '```json\n{"name": "write_file", "arguments": {"path": "out/x}}\n```',
    "tool code, an unknown tool": "```tool_code\nfly(to='the moon')\n```",
}
NAMES = ("fly", "", " ", "a b ü!", "x" * 300, "rm -rf", "../write")

USABLE: dict[str, Step] = {
    **{f"arguments: {name}": calls_raw(WRITE, raw) for name, raw in USABLE_ARGUMENTS.items()},
    **{f"text: {name}": says(text) for name, text in USABLE_TEXTS.items()},
    "call: a hundred times the same": calls_many(*[(WRITE, RIGHT)] * 100),
}
UNUSABLE: dict[str, Step] = {
    **{f"arguments: {name}": calls_raw(WRITE, raw) for name, raw in UNUSABLE_ARGUMENTS.items()},
    **{
        f"arguments: cut at {size}": calls_cut_short(WRITE, TEXT[:size])
        for size in (0, 1, len(TEXT) // 2, len(TEXT) - 1)
    },
    **{
        f"tool: {name[:12]!r}": Step(calls=(ScriptedCall(name=name, arguments=RIGHT),))
        for name in NAMES
    },
    "call: a hundred times an unknown one": calls_many(*[call("fly", {"to": "x"})] * 100),
    **{f"text: {name}": says(text) for name, text in UNUSABLE_TEXTS.items()},
}
