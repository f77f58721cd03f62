"""Registrations of plugins reach the packages that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.config.extension_settings import PluginEntrySettings
from hermes.core.errors import ConfigError
from hermes.images.provider import ImageGenProvider
from hermes.plugins.discovery import SearchPaths
from hermes.plugins.integration import engines_of, join_images, sync_skills
from hermes.plugins.protocol import (
    MOST_MESSAGES,
    MOST_QUESTIONS,
    Denied,
    Grants,
    PluginCaller,
    PluginRequests,
)
from tests.plugins.stage import Home, loaded

PROVIDER = """
class Ink:
    name = "ink"
    def is_available(self): return True
    def list_models(self): return [{"id": "ink-1"}]
    def generate(self, prompt, aspect_ratio="landscape", **kw):
        if prompt == "fail":
            raise ValueError("dry")
        return {"success": True, "image": prompt, "more": kw}

def register(ctx):
    ctx.register_image_gen_provider(Ink())
"""


class Shelf:
    def __init__(self) -> None:
        self.held: dict[str, tuple[Any, str]] = {}

    def register_provider(self, provider: Any, *, source: str) -> None:
        self.held[provider.name] = (provider, source)


async def test_a_bundled_provider_is_passed_on_itself(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "bundled" / "image_gen" / "ink"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: ink\nkind: backend\n")
    (folder / "__init__.py").write_text(PROVIDER)
    places = SearchPaths(user=str(home.plugins), pip=False, bundled=str(tmp_path / "bundled"))
    plugins = home.open(places=places)
    await plugins.load(list(plugins.usable()))
    shelf = Shelf()
    join_images(plugins, plugins.state("ink"), shelf.register_provider)
    provider, source = shelf.held["ink"]
    assert type(provider).__name__ == "Ink"
    assert source == "bundled"
    await plugins.close()


async def test_a_provider_of_another_process_answers_through_one_of_ours(home: Home) -> None:
    home.write("image_gen/ink", PROVIDER, "kind: backend")
    plugins = home.open("image_gen/ink")
    assert (await loaded(plugins))["image_gen/ink"].fault == ""
    shelf = Shelf()
    join_images(plugins, plugins.state("ink"), shelf.register_provider)
    provider, _ = shelf.held["ink"]
    assert isinstance(provider, ImageGenProvider)
    assert (provider.list_models(), provider.is_available()) == ([{"id": "ink-1"}], True)
    drawn = await provider.agenerate("a cat", "square", seed=7)
    assert drawn == {"success": True, "image": "a cat", "more": {"seed": 7}}
    failed = await provider.agenerate("fail")
    assert (failed["success"], failed["error_type"]) == (False, "provider_error")
    await plugins.close()


async def test_an_image_provider_needs_its_category(home: Home) -> None:
    home.write("ink", PROVIDER, "kind: backend")
    plugins = home.open("ink")
    assert "category: image_gen" in (await loaded(plugins))["ink"].fault
    await plugins.close()


ENGINE = """
class Short:
    name = "short"
    def compress(self, messages, current_tokens=None, focus_topic=None): return messages[-1:]

def register(ctx):
    ctx.register_context_engine(Short())
"""


async def test_a_context_engine_runs_inside_or_not_at_all(home: Home) -> None:
    home.write("short", ENGINE, "kind: standalone")
    plugins = home.open("short")
    await loaded(plugins)
    with pytest.raises(ConfigError, match="must run inside Hermes"):
        engines_of(plugins, plugins.state("short"))
    await plugins.close()
    plugins = home.open("short", entries={"short": PluginEntrySettings(isolation="in_process")})
    await loaded(plugins)
    engines = engines_of(plugins, plugins.state("short"))["short"]
    assert engines.of("one").compress([1, 2]) == [2]
    assert engines.of("one") is not engines.of("two")
    await plugins.close()


@pytest.mark.parametrize("path", ["../../..", "/etc", "nothing"])
async def test_a_skill_lies_in_its_plugin(home: Home, tmp_path: Path, path: str) -> None:
    code = f"def register(ctx): ctx.register_skill('s', {path!r})"
    home.write("skilled", code, "provides_skills: [s]")
    plugins = home.open("skilled")
    await loaded(plugins)
    [fault] = sync_skills(plugins.states, tmp_path / "skills")
    assert fault.startswith("skilled.s: ")
    assert not (tmp_path / "skills").exists()
    await plugins.close()


async def test_a_skill_may_be_named_by_where_the_plugin_runs(home: Home, tmp_path: Path) -> None:
    code = """
    from pathlib import Path
    def register(ctx): ctx.register_skill("s", Path(__file__).parent / "inner")
    """
    folder = home.write("skilled", code, "provides_skills: [s]")
    (folder / "inner").mkdir()
    (folder / "inner" / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\nDo it.\n")
    plugins = home.open("skilled")
    await loaded(plugins)
    assert sync_skills(plugins.states, tmp_path / "skills") == []
    text = (tmp_path / "skills" / "skilled.s" / "SKILL.md").read_text()
    assert "name: skilled.s" in text
    await plugins.close()
    assert sync_skills([], tmp_path / "skills") == []
    assert list((tmp_path / "skills").iterdir()) == []


async def test_requests_of_plugins_are_counted_and_checked() -> None:
    sent: list[str] = []

    async def inject(_plugin: str, _session: str, content: str) -> bool:
        sent.append(content)
        return True

    serving = PluginRequests("p", Grants(), inject=inject)
    with pytest.raises(Denied, match="outside of a call"):
        await serving.answer("inject_message", {"content": "x"}, None)
    with pytest.raises(Denied, match="Unknown method"):
        await serving.answer("read_keys", {}, PluginCaller("s"))
    with pytest.raises(Denied, match="is text"):
        await serving.answer("inject_message", {"content": 7}, PluginCaller("s"))
    assert not await serving.answer("inject_message", {"content": "x"}, PluginCaller())
    other = {"content": "x", "session_key": "other"}
    assert not await serving.answer("inject_message", other, PluginCaller("s"))
    for _ in range(MOST_MESSAGES):
        assert await serving.answer("inject_message", {"content": "x"}, PluginCaller("s"))
    with pytest.raises(Denied, match="at most"):
        await serving.answer("inject_message", {"content": "x"}, PluginCaller("s"))
    assert len(sent) == MOST_MESSAGES
    tired = PluginCaller("s")
    tired.questions = MOST_QUESTIONS
    with pytest.raises(Denied, match="at most"):
        await serving.answer("llm.complete", {}, tired)


async def test_a_plugin_inside_hermes_is_served_by_the_same_rules(home: Home) -> None:
    async def complete(_p: str, _s: str, _system: str, prompt: str, most: int) -> str:
        return f'{{"prompt": "{prompt}", "most": {most}}}'

    home.tool("near", "return CTX.llm.complete_structured({}, 'hi', max_tokens=9)")
    entries = {"near": PluginEntrySettings(isolation="in_process")}
    plugins = home.open("near", entries=entries, serving={"complete": complete})
    await loaded(plugins)
    running = plugins.running("near")
    with pytest.raises(Exception, match="needs the grant"):
        await running.call("tool", "go", {}, seconds=9, caller=PluginCaller("s"))
    await plugins.close()
