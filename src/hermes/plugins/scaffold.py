"""Creates a new plugin: manifest, working code and a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from hermes.core.errors import UsageError
from hermes.plugins.manifest import FILE, NAME

ScaffoldKind = Literal[
    "tool",
    "hook",
    "command",
    "image_gen",
    "memory",
    "web",
    "tts",
    "stt",
    "context_engine",
    "platform",
]
# Kinds with their own folder.
FOLDERS: dict[ScaffoldKind, str] = {
    "image_gen": "image_gen",
    "memory": "memory",
    "web": "web",
    "tts": "tts",
    "stt": "stt",
    "context_engine": "context_engine",
    "platform": "platforms",
}

_MANIFEST = """\
name: {name}
version: "0.1.0"
description: {words}
{more}
"""
_CODE: dict[ScaffoldKind, tuple[str, str, str]] = {
    "tool": (
        "provides_tools: [{tool}]",
        """\
def {tool}(args, **kw):
    return {{"text": f"Hello, {{args['name']}}!"}}


def register(ctx):
    schema = {{
        "description": "Greet a person by name.",
        "parameters": {{
            "properties": {{"name": {{"type": "string", "description": "Name to greet"}}}},
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
    ctx.register_command("{command}", answer, "Repeat the text.", "TEXT")
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
    "memory": (
        "kind: backend\ncategory: memory",
        """\
class Provider:
    name = "{name}"

    def initialize(self, session_id, hermes_home="", **kw):
        self.notes = []

    def prefetch(self, query, **kw):
        return "\\n".join(note for note in self.notes if query in note)

    def sync_turn(self, user, assistant, **kw):
        self.notes.append(user)


def register(ctx):
    ctx.register_memory_provider(Provider())
""",
        """\
def test_it_recalls():
    provider = plugin.Provider()
    provider.initialize("s")
    provider.sync_turn("I like tea", "Noted.")
    assert provider.prefetch("tea") == "I like tea"
""",
    ),
    "web": (
        "kind: backend\ncategory: web\nwants: [network]",
        """\
class Provider:
    name = "{name}"

    def search(self, query, limit=5):
        return [{{"url": "https://example.com", "title": "Example", "description": query}}][:limit]

    def extract(self, urls):
        return [{{"url": url, "title": "Example", "content": "Words."}} for url in urls]


def register(ctx):
    ctx.register_web_search_provider(Provider())
""",
        """\
def test_it_searches():
    assert plugin.Provider().search("x")[0]["url"] == "https://example.com"
""",
    ),
    "tts": (
        "kind: backend\ncategory: tts",
        """\
import wave


class Provider:
    name = "{name}"
    format = "wav"

    def synthesize(self, text, output_path, **kw):
        with wave.open(output_path, "wb") as out:
            out.setparams((1, 2, 8000, 0, "NONE", ""))
            out.writeframes(bytes(200 * len(text)))


def register(ctx):
    ctx.register_tts_provider(Provider())
""",
        """\
def test_it_writes_a_file(tmp_path):
    plugin.Provider().synthesize("hi", str(tmp_path / "hi.wav"))
    assert (tmp_path / "hi.wav").stat().st_size > 400
""",
    ),
    "stt": (
        "kind: backend\ncategory: stt",
        """\
import wave


class Provider:
    name = "{name}"

    def transcribe(self, path, language=None, **kw):
        with wave.open(path) as sound:
            seconds = sound.getnframes() / sound.getframerate()
        return {{"transcript": f"{{seconds:.1f}} seconds of sound", "duration": seconds}}


def register(ctx):
    ctx.register_stt_provider(Provider())
""",
        """\
def test_it_is_named():
    assert plugin.Provider.name == "{name}"
""",
    ),
    "context_engine": (
        "kind: exclusive\ncategory: context_engine",
        """\
class Engine:
    name = "{name}"
    threshold_tokens = 0

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or 0) > self.threshold_tokens > 0

    def compress(self, messages, current_tokens=None, focus_topic=None):
        return [messages[0], messages[-1]] if messages[-1]["role"] == "user" else messages


def register(ctx):
    ctx.register_context_engine(Engine)
""",
        """\
def test_it_keeps_the_first_and_the_last():
    said = [{{"role": "user", "content": str(n)}} for n in range(5)]
    assert plugin.Engine().compress(said) == [said[0], said[-1]]
""",
    ),
    "platform": (
        "kind: platform\ncategory: platforms",
        """\
class Adapter:
    def __init__(self, config):
        self.config = config

    async def run(self, deliver):
        pass

    async def post(self, to, text):
        return "sent"


def register(ctx):
    ctx.register_platform("{name}", "{name}", Adapter)
""",
        """\
def test_it_is_made_with_its_settings():
    assert plugin.Adapter({{"a": 1}}).config == {{"a": 1}}
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


def create_plugin(folder: Path, name: str, kind: ScaffoldKind) -> tuple[Path, ...]:
    """Writes the files into the new `folder` and returns them."""
    if not re.fullmatch(NAME, name):
        raise UsageError(
            f"{name!r} is not a valid plugin name: use lower-case letters, digits, -, _."
        )
    if folder.exists():
        raise UsageError(f"{folder} already exists.")
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
