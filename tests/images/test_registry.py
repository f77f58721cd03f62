"""Who draws: what was chosen, else the best that can, and plugins before what is bundled."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.config.yaml_parser import parse_yaml
from hermes.core.errors import UsageError
from hermes.core.world import World
from hermes.images.provider import ImageGenProvider, error_response
from hermes.images.registry import (
    BUNDLED,
    PACKAGE,
    ImageProviders,
    bundled_manifests,
    choose_model,
    model_variable,
)
from hermes.images.storage import ImageFault
from hermes.testing.clock import VirtualClock
from hermes.testing.image_provider import plain_studio
from tests.images.conftest import MakeStudio

ALL = (
    "comfyui",
    "fal",
    "local-test",
    "openai",
    "openai-codex",
    "openai-compatible",
    "openrouter",
    "replicate",
    "sdwebui",
    "xai",
)
KEY = "a-real-looking-key"


class Stub(ImageGenProvider):
    def __init__(self, name: str, *, available: bool | Exception = True) -> None:
        self._name = name
        self.available = available

    @property
    def name(self) -> str:
        return self._name

    def is_available(self) -> bool:
        if isinstance(self.available, Exception):
            raise self.available
        return self.available

    def list_models(self) -> list[dict[str, Any]]:
        return [{"id": "one"}, {"id": "two"}, {"id": "three"}, {"id": "four"}, {"id": "five"}]

    def generate(self, prompt: str, aspect_ratio: str = "landscape", **kwargs: Any) -> Any:
        return error_response(error="no", provider=self.name)


def test_every_manifest_says_the_same_to_a_library_that_knows_yaml() -> None:
    found = bundled_manifests(BUNDLED)
    assert tuple(each.name for each in found) == ALL
    for each in found:
        told = parse_yaml((BUNDLED / each.folder / "plugin.yaml").read_bytes())
        assert told["kind"] == "backend"
        assert told["name"] == each.name
        assert tuple(told.get("requires_env", ())) == each.requires_env
        assert told.get("requires_login", "") == each.requires_login
        assert told.get("opt_in", False) == each.opt_in


def test_all_bundled_providers_can_be_loaded_and_are_listed_by_name(make: MakeStudio) -> None:
    providers = ImageProviders(make())
    assert tuple(each.name for each in providers.list_providers()) == ALL
    assert providers.get_provider("nobody") is None


def test_without_keys_nobody_draws_and_no_module_is_loaded(make: MakeStudio) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    providers = ImageProviders(make())
    assert providers.available() == []
    assert not providers.any_available()
    assert not [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]
    with pytest.raises(ImageFault, match="hermes tools images"):
        providers.get_active_provider()


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        (["FAL_KEY"], "fal"),
        (["XAI_API_KEY", "OPENAI_API_KEY", "FAL_KEY", "OPENROUTER_API_KEY"], "fal"),
        (["XAI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"], "openai"),
        (["OPENROUTER_API_KEY", "XAI_API_KEY", "REPLICATE_API_TOKEN"], "xai"),
        (["OPENROUTER_API_KEY", "REPLICATE_API_TOKEN"], "openrouter"),
        (["REPLICATE_API_TOKEN"], "replicate"),
    ],
)
def test_the_first_that_has_a_key_draws(make: MakeStudio, keys: list[str], first: str) -> None:
    providers = ImageProviders(make(dict.fromkeys(keys, KEY)))
    assert providers.get_active_provider().name == first
    assert len(providers.available()) == len(keys)
    assert all(each.is_available() for each in providers.available())


def test_placeholders_are_no_keys(make: MakeStudio) -> None:
    assert not ImageProviders(make({"FAL_KEY": "your-key-here"})).any_available()


def test_servers_of_ones_own_count_where_the_settings_name_them(make: MakeStudio) -> None:
    for section in ("comfyui", "sdwebui", "openai_compatible"):
        studio = make(**{section: {"base_url": "http://127.0.0.1:1"}})
        name = section.replace("_", "-")
        assert ImageProviders(studio).get_active_provider().name == name
    assert ImageProviders(make(provider="comfyui")).available()[0].name == "comfyui"


def test_an_address_for_chats_is_not_taken_for_one_that_draws(make: MakeStudio) -> None:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    assert not ImageProviders(make(env)).any_available()
    chosen = ImageProviders(make(env, provider="openai")).get_active_provider()
    assert (chosen.is_available(), chosen.host()) == (True, "127.0.0.1")


def test_the_chosen_one_is_used_although_it_cannot_draw(make: MakeStudio) -> None:
    providers = ImageProviders(make({"FAL_KEY": KEY}, provider="xai"))
    active = providers.get_active_provider()
    assert providers.any_available()
    answer = active.generate("a corgi")
    assert (active.name, answer["error_type"]) == ("xai", "auth_required")
    assert "XAI_API_KEY" in answer["error"]


def test_a_provider_without_a_key_says_that_it_must_be_chosen(make: MakeStudio) -> None:
    provider = ImageProviders(make()).get_provider("local-test")
    assert provider is not None
    assert "needs to be chosen as image_gen.provider" in provider.generate("a corgi")["error"]


def test_a_chosen_one_that_does_not_exist_is_told_with_those_that_do(make: MakeStudio) -> None:
    providers = ImageProviders(make({"FAL_KEY": KEY}, provider="dall-e"))
    with pytest.raises(ImageFault, match="'dall-e', which is not one of comfyui, fal,") as raised:
        providers.get_active_provider()
    assert raised.value.kind == "invalid_argument"


def test_a_plugin_stands_before_the_bundled_one(make: MakeStudio) -> None:
    providers = ImageProviders(make({"FAL_KEY": KEY}))
    assert providers.source("fal") == "bundled"
    mine, theirs = Stub("fal"), Stub("fal")
    providers.register_provider(mine, source="user")
    assert providers.source("fal") == "user (overrides bundled)"
    providers.register_provider(theirs, source="project")
    assert providers.get_active_provider() is theirs
    assert providers.source("fal") == "project (overrides user)"
    assert providers.get_provider("fal") is theirs


def test_of_several_without_a_choice_known_names_come_first_then_the_alphabet(
    make: MakeStudio,
) -> None:
    providers = ImageProviders(make())
    for name in ("zebra", "apple"):
        providers.register_provider(Stub(name), source="user")
    assert providers.get_active_provider().name == "apple"
    providers.register_provider(Stub("openrouter"), source="user")
    assert providers.get_active_provider().name == "openrouter"


def test_one_that_fails_at_the_question_cannot_draw(make: MakeStudio) -> None:
    providers = ImageProviders(make())
    providers.register_provider(Stub("mine", available=RuntimeError("boom")), source="user")
    assert providers.available() == []
    assert not providers.any_available()


@pytest.mark.parametrize("name", ["", "My Backend", "UPPER", "a/b", "x" * 65])
def test_names_that_settings_could_not_hold_are_refused(make: MakeStudio, name: str) -> None:
    with pytest.raises(UsageError, match="not a valid provider name"):
        ImageProviders(make()).register_provider(Stub(name), source="user")


def test_what_is_no_provider_is_refused(make: MakeStudio) -> None:
    with pytest.raises(UsageError, match="not an ImageGenProvider"):
        ImageProviders(make()).register_provider(object(), source="user")  # type: ignore[arg-type]


async def test_whether_anybody_can_draw_is_looked_at_once_a_minute(tmp_path: Path) -> None:
    clock = VirtualClock()
    providers = ImageProviders(plain_studio(tmp_path, world=World(clock=clock)))
    stub = Stub("mine")
    providers.register_provider(stub, source="user")
    assert providers.any_available()
    stub.available = False
    assert providers.any_available()
    await clock.advance(61)
    assert not providers.any_available()


def test_the_model_is_what_was_asked_for_then_variables_then_settings(make: MakeStudio) -> None:
    stub = Stub("my-backend")
    assert model_variable("my-backend") == "MY_BACKEND_IMAGE_MODEL"
    env = {"MY_BACKEND_IMAGE_MODEL": "three"}
    options = {"my-backend": {"model": "four"}}
    assert choose_model(stub, make(env, options=options, model="five"), "two") == "two"
    assert choose_model(stub, make(env, options=options, model="five")) == "three"
    assert choose_model(stub, make(options=options, model="five")) == "four"
    assert choose_model(stub, make(model="five")) == "five"
    assert choose_model(stub, make()) == "one"


def test_models_that_are_not_listed_are_passed_over(make: MakeStudio) -> None:
    stub = Stub("my-backend")
    env = {"MY_BACKEND_IMAGE_MODEL": "unknown"}
    studio = make(env, options={"my-backend": {"model": "gone"}}, model="gpt-image-2-high")
    assert choose_model(stub, studio, "neither") == "one"
    assert choose_model(stub, make(env, model="two"), 3) == "two"
