"""Writers of calls in every style, made from the descriptions of the models' own templates."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hermes.core.prompt import ToolSpec

Call = tuple[str, dict[str, Any]]


def spec(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, description="", parameters=parameters)


TOOLS = (
    spec(
        "read_file",
        ("path",),
        path={"type": "string"},
        offset={"type": "integer", "minimum": 1},
        limit={"type": "integer"},
    ),
    spec("write_file", ("path", "content"), path={"type": "string"}, content={"type": "string"}),
    spec(
        "terminal",
        ("command",),
        command={"type": "string"},
        timeout={"type": "number"},
        background={"type": "boolean"},
    ),
    spec(
        "todo",
        ("items",),
        items={"type": "array", "items": {"type": "object"}},
        mode={"type": "string", "enum": ["replace", "merge"]},
    ),
    spec("status"),
)

READ: Call = ("read_file", {"path": "src/a b.txt", "offset": 3})
RUN: Call = ("terminal", {"command": "ls -la | grep 'x'", "background": True, "timeout": 2.5})
WRITE: Call = (
    "write_file",
    {"path": "ü.md", "content": 'def f():\n    return {"a": [1, "}"]}  # "ok" \\ 日本 🙂\n'},
)
PLAN: Call = ("todo", {"items": [{"id": 1, "text": "a, {b}"}, {"id": 2}], "mode": "merge"})
EMPTY: Call = ("status", {})
PREFIX = "antml:"


class Form(NamedTuple):
    """`plain`: it looks like ordinary text. `one`: a reply holds one call of it at most."""

    name: str
    write: Callable[[list[Call]], str]
    style: str = "auto"
    plain: bool = False
    one: bool = False

    @property
    def typed(self) -> bool:
        """Values are not just text."""
        untyped = ("qwen-coder", "seed", "deepseek-3.2", "glm", "minimax", "invoke", "tags")
        return not self.name.startswith(untyped)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def each(write: Callable[[Call], str], between: str = "\n") -> Callable[[list[Call]], str]:
    return lambda calls: between.join(write(call) for call in calls)


def pair(call: Call, name: str = "name", arguments: str = "arguments") -> dict[str, Any]:
    return {name: call[0], arguments: call[1]}


def listed(calls: list[Call], name: str = "name", arguments: str = "arguments") -> str:
    return dumped([pair(call, name, arguments) for call in calls])


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else dumped(value)


def elements(call: Call, opening: str, closing: str, item: str, item_end: str, nl: str) -> str:
    head = opening.format(call[0])
    body = "".join(
        f"{item.format(key)}{nl}{text_of(value)}{nl}{item_end}\n" for key, value in call[1].items()
    )
    return f"{head}\n{body}{closing}"


def coder(call: Call) -> str:
    return elements(call, "<function={}>", "</function>", "<parameter={}>", "</parameter>", "\n")


def invoke(call: Call, prefix: str = "") -> str:
    return elements(
        call,
        f'<{prefix}invoke name="{{}}">',
        f"</{prefix}invoke>",
        f'<{prefix}parameter name="{{}}">',
        f"</{prefix}parameter>",
        "",
    )


def dsml(calls: list[Call]) -> str:
    mark = "｜DSML｜"
    body = "\n".join(
        f'<{mark}invoke name="{name}">\n'
        + "".join(
            f'<{mark}parameter name="{key}" string="{str(isinstance(value, str)).lower()}">'
            f"{text_of(value)}</{mark}parameter>\n"
            for key, value in arguments.items()
        )
        + f"</{mark}invoke>"
        for name, arguments in calls
    )
    return f"<{mark}function_calls>\n{body}\n</{mark}function_calls>"


def glm(call: Call) -> str:
    body = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{text_of(value)}</arg_value>\n"
        for key, value in call[1].items()
    )
    return f"<tool_call>{call[0]}\n{body}</tool_call>"


def deepseek(calls: list[Call]) -> str:
    body = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{dumped(arguments)}\n```"
        "<｜tool▁call▁end｜>"
        for name, arguments in calls
    )
    return f"<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>"


def deepseek31(calls: list[Call], bar: str = "｜", gap: str = "▁") -> str:
    def token(*words: str) -> str:
        return f"<{bar}{gap.join(words)}{bar}>"

    body = "".join(
        token("tool", "call", "begin")
        + name
        + token("tool", "sep")
        + dumped(arguments)
        + token("tool", "call", "end")
        for name, arguments in calls
    )
    return token("tool", "calls", "begin") + body + token("tool", "calls", "end")


def kimi(calls: list[Call]) -> str:
    body = "".join(
        f"<|tool_call_begin|>functions.{name}:{n}<|tool_call_argument_begin|>{dumped(arguments)}"
        "<|tool_call_end|>"
        for n, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"


def harmony(call: Call) -> str:
    return (
        f"<|start|>assistant<|channel|>commentary to=functions.{call[0]} <|constrain|>json"
        f"<|message|>{dumped(call[1])}<|call|>"
    )


def python(call: Call) -> str:
    return f"{call[0]}({', '.join(f'{key}={value!r}' for key, value in call[1].items())})"


def gemma_value(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{gemma_value(v, quote)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(gemma_value(item, quote) for item in value) + "]"
    return dumped(value)


def own_tags(call: Call) -> str:
    body = "".join(f"<{key}>{text_of(value)}</{key}>\n" for key, value in call[1].items())
    return f"<{call[0]}>\n{body}</{call[0]}>"


def react(call: Call) -> str:
    return f"Action: {call[0]}\nAction Input: {dumped(call[1])}"


def openai(call: Call) -> dict[str, Any]:
    inner = {"name": call[0], "arguments": dumped(call[1])}
    return {"id": "call_1", "type": "function", "function": inner}


FORMS = (
    Form("hermes", each(lambda c: f"<tool_call>\n{dumped(pair(c))}\n</tool_call>")),
    Form("hermes-list", lambda cs: f"<tool_call>{listed(cs)}</tool_call>"),
    Form("hermes-python", each(lambda c: f"<tool_call>{pair(c)!r}</tool_call>")),
    Form("hermes-openai", each(lambda c: f"<tool_call>{dumped(openai(c))}</tool_call>")),
    Form("hermes-no-end", lambda cs: f"<tool_call>\n{dumped(pair(cs[0]))}", one=True),
    Form("function_call", each(lambda c: f"<function_call> {dumped(pair(c))} </function_call>")),
    Form("tools", each(lambda c: f"<tools>\n{dumped(pair(c))}\n</tools>")),
    Form("qwen-coder", each(lambda c: f"<tool_call>\n{coder(c)}\n</tool_call>")),
    Form("qwen-coder-bare", each(coder)),
    Form("qwen-coder-half", each(lambda c: f"{coder(c)}\n</tool_call>")),
    Form("seed", each(lambda c: f"<seed:tool_call>\n{coder(c)}\n</seed:tool_call>")),
    Form(
        "llama-python-tag",
        lambda cs: (
            "<|python_tag|>"
            + "; ".join(dumped(pair(c, arguments="parameters")) for c in cs)
            + "<|eom_id|>"
        ),
    ),
    Form("llama-function", each(lambda c: f"<function={c[0]}>{dumped(c[1])}</function>")),
    Form("llama-bare", each(lambda c: dumped(pair(c, arguments="parameters")), "; "), plain=True),
    Form("llama4", lambda cs: f"[{', '.join(map(python, cs))}]", "pythonic", plain=True),
    Form(
        "llama4-tokens", lambda cs: f"<|python_start|>[{', '.join(map(python, cs))}]<|python_end|>"
    ),
    Form("mistral", lambda cs: f"[TOOL_CALLS]{listed(cs)}"),
    Form("mistral-new", each(lambda c: f"[TOOL_CALLS]{c[0]}[ARGS]{dumped(c[1])}", "")),
    Form("mistral-id", each(lambda c: f"[TOOL_CALLS]{c[0]}[CALL_ID]a1[ARGS]{dumped(c[1])}", "")),
    Form("deepseek", deepseek),
    Form("deepseek-3.1", deepseek31),
    Form("deepseek-ascii", lambda cs: deepseek31(cs, "|", "_")),
    Form("deepseek-3.2", dsml),
    Form("glm", each(glm)),
    Form("kimi", kimi),
    Form("gemma-code", lambda cs: "```tool_code\n" + "\n".join(map(python, cs)) + "\n```"),
    Form("gemma-print", lambda cs: f"```tool_code\nprint({python(cs[0])})\n```", one=True),
    Form("gemma-dict", lambda cs: f"```tool_call\n{pair(cs[0])!r}\n```", one=True),
    Form(
        "functiongemma",
        each(
            lambda c: (
                f"<start_function_call>call:{c[0]}{gemma_value(c[1], '<escape>')}"
                "<end_function_call>"
            ),
            "",
        ),
    ),
    Form(
        "gemma4",
        each(
            lambda c: f"<|tool_call>call:{c[0]}" + gemma_value(c[1], '<|"|>') + "<tool_call|>", ""
        ),
    ),
    Form(
        "minimax",
        lambda cs: "<minimax:tool_call>\n" + "\n".join(map(invoke, cs)) + "\n</minimax:tool_call>",
    ),
    Form("granite", lambda cs: f"<|tool_call|>{listed(cs)}"),
    Form("phi", lambda cs: f"functools{listed(cs)}"),
    Form("jamba", lambda cs: f"<tool_calls>{listed(cs)}</tool_calls>"),
    Form("nemotron", lambda cs: f"<TOOLCALL>{listed(cs)}</TOOLCALL>"),
    Form(
        "internlm",
        each(
            lambda c: (
                "<|action_start|><|plugin|>\n"
                + dumped(pair(c, arguments="parameters"))
                + "<|action_end|>"
            )
        ),
    ),
    Form(
        "command",
        lambda cs: f"<|START_ACTION|>{listed(cs, 'tool_name', 'parameters')}<|END_ACTION|>",
    ),
    Form(
        "command-old",
        lambda cs: f"Action: ```json\n{listed(cs, 'tool_name', 'parameters')}\n```",
    ),
    Form("harmony", each(harmony, "")),
    Form("harmony-bare", lambda cs: harmony(cs[0]).removeprefix("<|start|>assistant"), one=True),
    Form("react", lambda cs: f"{react(cs[0])}\n", one=True),
    Form("json", each(lambda c: dumped(pair(c))), "json", plain=True),
    Form("json-list", listed, "json", plain=True),
    Form("json-tool", each(lambda c: dumped(pair(c, "tool", "args"))), "json", plain=True),
    Form("fenced", lambda cs: f"```json\n{listed(cs)}\n```", "fenced", plain=True),
    Form("fenced-each", each(lambda c: f"```\n{dumped(pair(c))}\n```"), "fenced", plain=True),
    Form(
        "invoke",
        lambda cs: "<function_calls>\n" + "\n".join(map(invoke, cs)) + "\n</function_calls>",
    ),
    Form(
        "invoke-prefixed",
        lambda cs: (
            f"<{PREFIX}function_calls>\n"
            + "\n".join(invoke(c, PREFIX) for c in cs)
            + f"\n</{PREFIX}function_calls>"
        ),
    ),
    Form("invoke-bare", each(invoke)),
    Form("lfm", lambda cs: f"<|tool_call_start|>[{', '.join(map(python, cs))}]<|tool_call_end|>"),
    Form(
        "olmo", lambda cs: "<function_calls>\n" + "\n".join(map(python, cs)) + "\n</function_calls>"
    ),
    Form("qwen-agent", each(lambda c: f"✿FUNCTION✿: {c[0]}\n✿ARGS✿: {dumped(c[1])}")),
    Form("functionary", each(lambda c: f">>>{c[0]}\n{dumped(c[1])}"), "functionary", plain=True),
    Form("tags", each(own_tags)),
)
