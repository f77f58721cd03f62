"""Plugins with older import names work unchanged, and nobody else sees these names."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from hermes.plugins.inside.legacy_imports import PluginFinder
from hermes.testing.steps import calls, says
from tests.images.fakes import PNG
from tests.plugins.sessions.talk import Talk, results, use

MANIFEST = """
name: my-backend
version: 1.0.0
description: My custom image generation backend
author: Your Name
kind: backend
requires_env:
  - MY_BACKEND_API_KEY
"""
PROVIDER = '''
import base64
import os
from typing import Any, Dict, List, Optional

from agent.image_gen_provider import (
    DEFAULT_ASPECT_RATIO,
    ImageGenProvider,
    error_response,
    resolve_aspect_ratio,
    save_b64_image,
    success_response,
)
from .drawing import draw


class MyBackendImageGenProvider(ImageGenProvider):
    @property
    def name(self) -> str:
        return "my-backend"

    @property
    def display_name(self) -> str:
        return "My Backend"

    def is_available(self) -> bool:
        return bool(os.environ.get("MY_BACKEND_API_KEY"))

    def list_models(self) -> List[Dict[str, Any]]:
        return [{"id": "my-model-fast", "display": "Fast", "speed": "~5s", "price": "$0.01/image"}]

    def default_model(self) -> Optional[str]:
        return "my-model-fast"

    def get_setup_schema(self) -> Dict[str, Any]:
        key = {"key": "MY_BACKEND_API_KEY", "prompt": "API key", "url": "https://x.example"}
        return {"name": "My Backend", "badge": "paid", "tag": "", "env_vars": [key]}

    def generate(self, prompt, aspect_ratio=DEFAULT_ASPECT_RATIO, **kwargs):
        aspect = resolve_aspect_ratio(aspect_ratio)
        facts = dict(provider=self.name, model="my-model-fast", prompt=prompt, aspect_ratio=aspect)
        if not prompt.strip():
            return error_response(error="No prompt", error_type="invalid_argument", **facts)
        path = save_b64_image(draw(prompt), prefix="my_backend")
        return success_response(image=str(path), **facts, extra={"size": "1x1"})


def register(ctx) -> None:
    """Plugin entry point."""
    ctx.register_image_gen_provider(MyBackendImageGenProvider())
    from agent.image_gen_registry import get_provider, list_providers
    assert get_provider("my-backend") is list_providers()[0]
'''
DRAWING = f'''
import base64
import agent.image_gen_provider

def draw(prompt):
    assert agent.image_gen_provider.resolve_aspect_ratio("x") == "landscape"
    size = 2_000_000 if "large" in prompt else 0
    data = base64.b64decode("{base64.b64encode(PNG).decode()}") + bytes(size)
    return base64.b64encode(data).decode()
'''
ARTICLE = """
import json
from plugins import Plugin


class WebSearchPlugin(Plugin):
    @property
    def name(self) -> str:
        return "site_search"

    @property
    def description(self) -> str:
        return "Search the web for current information"

    async def execute(self, parameters):
        query = parameters.get('query')
        max_results = parameters.get('max_results', 5)
        return {'results': [{'title': 'Found'}] * max_results, 'query': query}

    def get_schema(self):
        return {
            'type': 'object',
            'properties': {
                'query': {'type': 'string', 'description': 'Search query'},
                'max_results': {'type': 'integer', 'description': 'Maximum results to return'}
            },
            'required': ['query']
        }
"""


@pytest.fixture
def backend(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.setenv("MY_BACKEND_API_KEY", "mine-0123456789")
    talk.write("image_gen/my-backend/plugin.yaml", MANIFEST)
    talk.write("image_gen/my-backend/__init__.py", PROVIDER)
    talk.write("image_gen/my-backend/drawing.py", DRAWING)
    return talk


async def hermes(talk: Talk, *words: str) -> str:
    return await asyncio.to_thread(talk.hermes, *words)


@pytest.mark.parametrize("isolation", ["process", "in_process"])
@pytest.mark.parametrize("prompt", ["a corgi", "a large corgi"])
async def test_an_image_backend_with_older_names_draws(
    backend: Talk, isolation: str, prompt: str
) -> None:
    key = "image_gen/my-backend"
    await hermes(backend, "plugins", "enable", key, "--isolation", isolation, "--yes")
    listed = json.loads(await hermes(backend, "tools", "images", "--json"))
    (row,) = [each for each in listed if each["name"] == "my-backend"]
    assert (row["label"], row["available"], row["source"]) == ("My Backend", True, "user")
    assert "my-backend" in await hermes(backend, "tools", "images")
    chosen = await hermes(backend, "tools", "images", "my-backend")
    assert "My Backend generates images" in chosen
    records = await backend.say(calls("image_generate", prompt=prompt), says("Done."))
    answer = json.loads(results(records)[0].text)
    assert answer["success"], answer
    assert (answer["provider"], answer["model"]) == ("my-backend", "my-model-fast")
    image = Path(answer["image"])
    assert image.parent == backend.home / "cache" / "images"
    assert re.fullmatch(r"my_backend_\d{8}_\d{6}_[0-9a-f]{8}\.png", image.name)
    data = await asyncio.to_thread(image.read_bytes)
    assert data.startswith(PNG)
    assert (len(data) > 2_000_000) == ("large" in prompt)


def plugin_finders() -> list[object]:
    return [each for each in sys.meta_path if isinstance(each, PluginFinder)]


async def test_nobody_but_the_plugin_sees_the_names(backend: Talk) -> None:
    key, before = "image_gen/my-backend", plugin_finders()
    await hermes(backend, "plugins", "enable", key, "--isolation", "in_process", "--yes")
    await backend.say(calls("image_generate", prompt="a corgi"), says("Done."))
    assert not {"agent", "agent.image_gen_provider", "plugins"} & set(sys.modules)
    assert plugin_finders() == before
    for name in ("agent.image_gen_provider", "plugins"):
        with pytest.raises(ImportError):
            importlib.import_module(name)


async def test_a_confined_backend_reads_only_the_images_of_its_request(backend: Talk) -> None:
    picture = backend.home.parent / "private.png"
    picture.write_bytes(PNG)
    code = PROVIDER.replace(
        "        path = save_b64_image(",
        "        from agent.image_gen_provider import load_source_image\n"
        f"        load_source_image({str(picture)!r})\n"
        "        path = save_b64_image(",
    )
    backend.write("image_gen/my-backend/__init__.py", code)
    await hermes(backend, "plugins", "enable", "image_gen/my-backend", "--yes")
    await hermes(backend, "tools", "images", "my-backend")
    records = await backend.say(calls("image_generate", prompt="a corgi"), says("Done."))
    answer = json.loads(results(records)[0].text)
    assert not answer["success"]
    assert "Only the images of this request" in answer["error"]


@pytest.mark.parametrize("isolation", ["process", "in_process"])
async def test_a_single_file_with_a_plugin_class_is_a_tool(talk: Talk, isolation: str) -> None:
    talk.write("site_search.py", ARTICLE)
    await hermes(talk, "plugins", "enable", "site_search", "--isolation", isolation, "--yes")
    records = await talk.say(use("site_search", query="cats", max_results=1), says("Done."))
    assert json.loads(results(records)[0].text) == {
        "results": [{"title": "Found"}],
        "query": "cats",
    }


async def test_a_single_file_replaces_a_built_in_tool_only_if_allowed(talk: Talk) -> None:
    talk.write("web_search.py", ARTICLE.replace("site_search", "web_search"))
    await hermes(talk, "plugins", "enable", "web_search", "--yes")
    await talk.say(says("Hello."))
    (fault,) = [each for each in talk.news if "web_search" in each]
    assert "--allow-tool-override" in fault
    await hermes(talk, "plugins", "enable", "web_search", "--allow-tool-override", "--yes")
    records = await talk.say(use("web_search", query="cats", max_results=1), says("Done."))
    assert json.loads(results(records)[0].text)["query"] == "cats"


async def test_a_user_backend_replaces_a_bundled_one_until_it_is_disabled(backend: Talk) -> None:
    backend.write("image_gen/my-backend/__init__.py", PROVIDER.replace('"my-backend"', '"xai"'))
    key = "image_gen/my-backend"

    async def source() -> str:
        rows = json.loads(await hermes(backend, "tools", "images", "--json"))
        return str(next(each["source"] for each in rows if each["name"] == "xai"))

    await hermes(backend, "plugins", "enable", key, "--yes")
    assert await source() == "user (overrides bundled)"
    await hermes(backend, "plugins", "disable", key)
    assert await source() == "bundled"


async def test_a_backend_that_only_returns_a_url_is_shown_as_it_is(backend: Talk) -> None:
    url = "https://x.example/picture.png"
    code = PROVIDER.replace('save_b64_image(draw(prompt), prefix="my_backend")', repr(url))
    backend.write("image_gen/my-backend/__init__.py", code)
    await hermes(backend, "plugins", "enable", "image_gen/my-backend", "--yes")
    await hermes(backend, "tools", "images", "my-backend")
    records = await backend.say(calls("image_generate", prompt="a corgi"), says("Done."))
    assert json.loads(results(records)[0].text)["image"] == url


async def test_a_backend_from_pip_draws_once_it_is_enabled(
    backend: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    package, info = "my_backend_imggen", "my_backend_imggen-1.0.dist-info"
    manifest = MANIFEST.replace("my-backend", "my-backend-imggen") + "category: image_gen\n"
    for file, text in (
        (f"{package}/__init__.py", PROVIDER),
        (f"{package}/drawing.py", DRAWING),
        (f"{package}/plugin.yaml", manifest),
        (f"{info}/METADATA", "Name: my-backend-imggen\nVersion: 1.0\n"),
        (f"{info}/entry_points.txt", f"[hermes_agent.plugins]\nmy-backend-imggen = {package}\n"),
    ):
        backend.write(file, text, site)
    monkeypatch.syspath_prepend(str(site))
    await hermes(backend, "plugins", "enable", "my-backend-imggen", "--yes")
    await hermes(backend, "tools", "images", "my-backend")
    records = await backend.say(calls("image_generate", prompt="a corgi"), says("Done."))
    answer = json.loads(results(records)[0].text)
    assert answer["success"], answer
