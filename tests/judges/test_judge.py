"""The judges know right from wrong, and where."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hermes.codec.values import JsonObject
from hermes.testing.wires.table import WireName
from tests.judges.judge import Judge, complaints_of_log

ROOT = Path(__file__).parents[2]
MARK = {"type": "ephemeral"}
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SCHEMA = {"type": "object", "properties": {}}
RIGHT: dict[WireName, JsonObject] = {
    "chat": {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "a", "content": "seen"},
        ],
    },
    "responses": {
        "model": "m",
        "store": False,
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "hi"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:,"},
                ],
            },
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "seen"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "ho"}],
            },
        ],
    },
    "messages": {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
        "tools": [{"name": "look", "input_schema": SCHEMA}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "a", "name": "look", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True}
                ],
            },
        ],
    },
}


def changed(wire: WireName, *path: str | int, to: object) -> JsonObject:
    body = deepcopy(RIGHT[wire])
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return body


@pytest.mark.parametrize("wire", RIGHT)
def test_what_is_right_is_not_complained_about(wire: WireName) -> None:
    assert Judge().complaints(wire, RIGHT[wire]) == []


WRONG: list[tuple[WireName, tuple[str | int, ...], object, str]] = [
    ("chat", ("temperature",), "1", "body.temperature: Input should be a valid number"),
    ("chat", ("think_hard",), True, "body.think_hard: Extra inputs are not permitted"),
    (
        "chat",
        ("tools", 0, "function", "schema"),
        {},
        "body.tools[0].function.schema: Extra inputs are not permitted",
    ),
    (
        "chat",
        ("messages", 1, "content", 0, "colour"),
        1,
        "messages[1].content[0].colour: Extra inputs are not permitted",
    ),
    (
        "chat",
        ("messages", 2, "tool_calls", 0, "function", "arguments"),
        {},
        "messages[2].tool_calls[0].function.arguments: Input should be a valid string",
    ),
    (
        "responses",
        ("input", 0, "content", 0, "type"),
        "output_text",
        "input[0].content[0].type: Input should be",
    ),
    ("responses", ("input", 3, "output"), 5, "input[3].output: Input should be"),
    ("messages", ("max_tokens",), "10", "body.max_tokens: Input should be a valid integer"),
    (
        "messages",
        ("messages", 1, "content", 0),
        {"type": "thinking", "thinking": "hm"},
        "messages[1].content[0].signature: Field required",
    ),
    (
        "messages",
        ("messages", 2, "content", 0, "failed"),
        True,
        "messages[2].content[0].failed: Extra inputs are not permitted",
    ),
]


@pytest.mark.parametrize(("wire", "path", "to", "complaint"), WRONG)
def test_what_is_wrong_is_told_with_its_place(
    wire: WireName, path: tuple[str | int, ...], to: object, complaint: str
) -> None:
    found = Judge().complaints(wire, changed(wire, *path, to=to))
    assert any(one.startswith(complaint) for one in found), found


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("messages", 1, "content", 0, "cache_control"), MARK),
        (("reasoning",), {"enabled": True, "effort": "high"}),
        (("messages", 2, "reasoning_details"), [{"type": "reasoning.text"}]),
        (("messages", 2, "reasoning_content"), "hm"),
        (("chat_template_kwargs",), {"enable_thinking": False}),
        (("think",), True),
    ],
)
def test_what_one_vendor_documents_is_right(path: tuple[str | int, ...], to: object) -> None:
    assert Judge().complaints("chat", changed("chat", *path, to=to)) == []


def test_what_two_vendors_document_is_wrong_in_one_request() -> None:
    body = changed("chat", "think", to=True)
    body["messages"][1]["content"][0]["cache_control"] = MARK
    assert Judge().complaints("chat", body) == [
        "messages[1]: for openrouter, but what comes before for ollama"
    ]


def test_an_extension_has_a_type_too() -> None:
    path = ("messages", 1, "content", 0, "cache_control")
    found = Judge().complaints("chat", changed("chat", *path, to={"type": "eternal"}))
    assert found == ["messages[1].content[0].cache_control.type: Input should be 'ephemeral'"]


def test_a_log_of_requests_can_be_judged(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    bodies = [RIGHT["chat"], changed("chat", "colour", to=1)]
    lines = [{"n": n, "wire": "chat", "body": body} for n, body in enumerate(bodies, 1)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert complaints_of_log(log) == ["chat request 2: body.colour: Extra inputs are not permitted"]


GUILTY = """
import sys
import httpx2, pytest
from hermes.testing.server import ScriptedServer

def ask(server):
    body = {"model": "m", "colour": 1, "messages": [{"role": "user", "content": "hi"}]}
    httpx2.post(f"{server.url}/v1/chat/completions", json=body, verify=False, timeout=60)

def test_without_a_server():
    assert "openai" not in sys.modules and "anthropic" not in sys.modules

def test_wrong(model_server):
    ask(model_server)
    model_server.violations.clear()

@pytest.fixture
def late(model_server):
    yield
    ask(model_server)
    model_server.violations.clear()

def test_wrong_in_its_fixture(late):
    pass

@pytest.mark.unjudged
def test_wrong_on_purpose(model_server):
    ask(model_server)
    model_server.violations.clear()
"""


def test_a_wrong_request_fails_the_test_that_made_it(tmp_path: Path) -> None:
    (tmp_path / "test_guilty.py").write_text(GUILTY)
    plugins = "-p hermes.testing.fixtures -p tests.judges.plugin -p no:cacheprovider"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *plugins.split(), "--rootdir", ".", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = "chat request 1: body.colour: Extra inputs are not permitted"
    assert done.stdout.count(f"\n{told}\n") == 2, done.stdout + done.stderr
    outcomes = [
        line.split()[1] for line in done.stdout.splitlines() if "::" in line and "%" in line
    ]
    assert outcomes == ["PASSED", "FAILED", "PASSED", "ERROR", "PASSED"], done.stdout
