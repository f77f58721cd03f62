"""A new plugin to begin with: a manifest, a few lines that work, and a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from hermes.core.errors import UsageError
from hermes.plugins.manifest import FILE, NAME

Kind = Literal["tool", "hook", "command", "image_gen"]

_MANIFEST = """\
name: {name}
version: "0.1.0"
description: {words}
{more}
"""
_CODE: dict[Kind, tuple[str, str, str]] = {
    "tool": (
        "provides_tools: [{tool}]",
        """\
def {tool}(args, **kw):
    return {{"text": f"Hello, {{args['name']}}!"}}


def register(ctx):
    schema = {{
        "description": "Greet somebody by name.",
        "parameters": {{
            "properties": {{"name": {{"type": "string", "description": "Whom to greet"}}}},
            "required": ["name"],
        }},
    }}
    ctx.register_tool("{tool}", "plugins", schema, {tool})
""",
        """\
def test_it_greets():
    assert plugin.{tool}({{"name": "Ada"}}) == {{"text": "Hello, Ada!"}}
""",
    ),
    "hook": (
        "provides_hooks: [post_tool_call]",
        """\
import json


def note(tool_name="", **kw):
    with open("calls.jsonl", "a") as out:
        out.write(json.dumps({{"tool": tool_name}}) + "\\n")


def register(ctx):
    ctx.register_hook("post_tool_call", note)
""",
        """\
def test_it_notes_each_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin.note(tool_name="terminal")
    assert (tmp_path / "calls.jsonl").read_text() == '{{"tool": "terminal"}}\\n'
""",
    ),
    "command": (
        "provides_commands: [{command}]",
        """\
def answer(raw_args):
    return f"You said: {{raw_args}}"


def register(ctx):
    ctx.register_command("{command}", answer, "Say it again.", "TEXT")
""",
        """\
def test_it_answers():
    assert plugin.answer("hi") == "You said: hi"
""",
    ),
    "image_gen": (
        "kind: backend\ncategory: image_gen\nwants: [network]",
        """\
from hermes.images.provider import ImageGenProvider


class Provider(ImageGenProvider):
    name = "{name}"

    def generate(self, prompt, aspect_ratio="landscape", **kw):
        return {{
            "success": True,
            "image": "https://example.com/picture.png",
            "model": "{name}",
            "prompt": prompt,
            "aspect_ratio": aspect_ratio,
            "provider": self.name,
            "modality": "text",
        }}


def register(ctx):
    ctx.register_image_gen_provider(Provider())
""",
        """\
def test_it_draws():
    assert plugin.Provider().generate("a corgi")["success"]
""",
    ),
}
_TEST = """\
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("plugin", Path(__file__).parents[1] / "__init__.py")
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)


"""


def scaffold(folder: Path, name: str, kind: Kind) -> tuple[Path, ...]:
    """The files that were written into `folder`, which must not be there."""
    if not re.fullmatch(NAME, name):
        raise UsageError(f"{name!r} cannot name a plugin; use small letters, digits, '-' and '_'.")
    if folder.exists():
        raise UsageError(f"{folder} is there already.")
    more, code, test = _CODE[kind]
    words = {"name": name, "tool": re.sub(r"[^a-z0-9_]", "_", f"{name}_hello"), "command": name}
    words |= {"words": f"A plugin with a {kind}.", "more": more.format(**words)}
    texts = {
        FILE: _MANIFEST.format(**words),
        "__init__.py": code.format(**words),
        f"tests/test_{re.sub(r'[^a-z0-9_]', '_', name)}.py": _TEST + test.format(**words),
    }
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tuple(folder / file for file in texts)
