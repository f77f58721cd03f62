"""The whole interface of plugins: each member of `ctx`, field of a manifest and subcommand."""

from __future__ import annotations

import inspect
from pathlib import Path

import click
import pytest

from hermes.images import provider
from hermes.images.provider import ImageGenProvider
from hermes.plugins.discovery import CATEGORIES
from hermes.plugins.inside.context import Context, HostModel
from hermes.plugins.manifest import PluginManifest, PluginVariable
from hermes.surfaces.cli.root import root

METHODS = {
    "register_tool": (
        "name", "toolset", "schema", "handler", "check_fn", "requires_env", "is_async", "emoji",
        "override",
    ),
    "register_hook": ("hook", "callback", "priority", "timeout"),
    "register_command": ("name", "handler", "description", "args_hint"),
    "register_cli_command": ("name", "help", "setup_fn", "handler_fn"),
    "register_skill": ("name", "path", "description"),
    "register_platform": (
        "name", "label", "adapter_factory", "check_fn", "validate_config", "required_env",
        "install_hint", "setup_fn", "allowed_users_env", "allow_all_env", "max_message_length",
        "emoji", "platform_hint",
    ),
    "register_image_gen_provider": ("provider",),
    "register_tts_provider": ("provider",),
    "register_stt_provider": ("provider",),
    "register_browser_provider": ("provider",),
    "register_web_search_provider": ("provider",),
    "register_memory_provider": ("provider",),
    "register_context_engine": ("engine",),
    "dispatch_tool": ("name", "args"),
    "inject_message": ("content", "role", "session_key"),
    "get_secret": ("name",),
}  # fmt: skip
FIELDS = (
    "name", "version", "description", "author", "homepage", "license", "kind", "category",
    "requires_env", "requires_hermes", "dependencies", "provides_tools", "provides_hooks",
    "provides_commands", "isolation",
)  # fmt: skip
COMMANDS = {
    "plugins": {
        "list", "install", "update", "remove", "enable", "disable", "info", "doctor", "new",
    },
    "hooks": {"list", "test", "revoke", "doctor"},
    "memory": {"setup", "status", "off"},
}  # fmt: skip
HELPERS = (
    "DEFAULT_ASPECT_RATIO", "VALID_ASPECT_RATIOS", "resolve_aspect_ratio",
    "normalize_reference_images", "save_b64_image", "save_url_image", "load_source_image",
    "success_response", "error_response",
)  # fmt: skip
PROVIDER = (
    "name", "display_name", "is_available", "list_models", "default_model", "get_setup_schema",
    "capabilities", "generate", "agenerate",
)  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_the_context_has_each_method_with_its_arguments(name: str) -> None:
    found = tuple(inspect.signature(getattr(Context, name)).parameters)[1:]
    assert found[: len(METHODS[name])] == METHODS[name]


def test_the_context_has_its_values(tmp_path: Path) -> None:
    context = Context(
        {"name": "x", "version": "1"},
        config={"any": "thing"},
        data_dir=tmp_path,
        secrets={},
        ask=lambda _method, _params: None,
    )
    assert (context.config, context.data_dir) == ({"any": "thing"}, tmp_path)
    assert (context.manifest["version"], context.profile_name) == ("1", "default")
    assert context.logger.name == "hermes.plugin.x"
    assert isinstance(context.llm, HostModel)
    assert next(iter(inspect.signature(context.llm.complete_structured).parameters)) == "schema"


@pytest.mark.parametrize("name", FIELDS)
def test_a_manifest_has_each_field(name: str) -> None:
    assert name in PluginManifest.__struct_fields__


def test_a_variable_of_a_manifest_has_its_fields() -> None:
    assert set(PluginVariable.__struct_fields__) == {
        *("name", "description", "url", "secret", "required"),
    }


def test_the_folders_of_categories_are_known() -> None:
    assert set(CATEGORIES) == {
        *("image_gen", "memory", "context_engine", "platforms", "browser", "tts", "stt", "web"),
    }


@pytest.mark.parametrize("group", COMMANDS)
def test_a_group_has_each_subcommand(group: str) -> None:
    context = click.Context(root)
    found = root.get_command(context, group)
    assert isinstance(found, click.Group)
    assert COMMANDS[group] <= set(found.list_commands(context))


@pytest.mark.parametrize("name", HELPERS)
def test_authors_of_image_providers_have_each_helper(name: str) -> None:
    assert hasattr(provider, name)


@pytest.mark.parametrize("name", PROVIDER)
def test_an_image_provider_has_each_member(name: str) -> None:
    assert hasattr(ImageGenProvider, name)
