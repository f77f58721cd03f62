from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.json import convert, decode
from hermes.codec.values import JsonObject
from hermes.config.extension_settings import McpServerSettings
from hermes.core.errors import UsageError
from hermes.mcp.installation import InstallPlan, ServerDescription, plan_install

WEATHER: JsonObject = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "io.github.somebody/weather",
    "description": "Tells the weather.",
    "version": "1.2.0",
    "packages": [
        {
            "registryType": "pypi",
            "identifier": "weather-mcp",
            "version": "1.2.0",
            "transport": {"type": "stdio"},
            "runtimeArguments": [{"type": "named", "name": "--python", "value": "3.12"}],
            "packageArguments": [
                {"type": "positional", "valueHint": "city", "isRequired": True, "isRepeated": True},
                {"type": "named", "name": "--units", "choices": ["c", "f"], "default": "c"},
                {"type": "named", "name": "--cache", "value": "{folder}/w"},
            ],
            "environmentVariables": [
                {"name": "WEATHER_PASS", "isRequired": True, "isSecret": True},
                {"name": "WEATHER_LEVEL"},
            ],
        }
    ],
    "remotes": [
        {
            "type": "sse",
            "url": "https://{region}.weather.example/sse",
            "variables": {"region": {"default": "eu"}},
            "headers": [
                {
                    "name": "X-Pass",
                    "value": "Pass {pass}",
                    "variables": {"pass": {"isRequired": True, "isSecret": True}},
                }
            ],
        }
    ],
}
FILLED = {"city": ["Lisbon", "Bergen"], "WEATHER_PASS": ["p"]}


def weather(**changes: object) -> InstallPlan:
    return plan_install(convert(ServerDescription, WEATHER), **changes)  # type: ignore[arg-type]


def test_a_package_is_started_with_what_was_filled_in() -> None:
    plan = weather()
    assert plan.settings(FILLED) == {
        "command": "uvx",
        "args": ["--python", "3.12", "weather-mcp@1.2.0", "Lisbon", "Bergen", "--units", "c"],
        "env": {"WEATHER_PASS": "p"},
    }
    more = plan.settings({**FILLED, "units": ["f"], "folder": ["/v"], "WEATHER_LEVEL": ["high"]})
    assert more["args"][-4:] == ["--units", "f", "--cache", "/v/w"]
    assert more["env"] == {"WEATHER_PASS": "p", "WEATHER_LEVEL": "high"}
    assert plan.secrets() == {"WEATHER_PASS"}


def test_a_server_that_runs_elsewhere_is_reached() -> None:
    plan = weather(remote=True)
    assert [blank.name for blank in plan.missing({})] == ["pass"]
    assert plan.settings({"pass": ["x"]}) == {
        "url": "https://eu.weather.example/sse",
        "transport": "sse",
        "headers": {"X-Pass": "Pass x"},
    }
    assert plan.secrets() == {"X-Pass"}


def test_an_image_gets_its_variables_by_name() -> None:
    package = {
        "registryType": "oci",
        "identifier": "docker.io/somebody/weather",
        "version": "1.2",
        "environmentVariables": [{"name": "PASS", "isSecret": True}],
    }
    plan = plan_install(convert(ServerDescription, {"name": "weather", "packages": [package]}))
    assert plan.settings({"PASS": ["p"]}) == {
        "command": "docker",
        "args": ["run", "-i", "--rm", "-e", "PASS", "docker.io/somebody/weather:1.2"],
        "env": {"PASS": "p"},
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "--set city=VALUE"),
        ({**FILLED, "town": ["x"]}, "'town' cannot be set"),
        ({**FILLED, "units": ["k"]}, "units must be one of c, f"),
    ],
)
def test_what_is_missing_or_wrong_is_named(given: dict[str, list[str]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        weather().settings(given)


@pytest.mark.parametrize("identifier", ["--privileged", "-e", "x y", "x;y", "", "$(id)"])
def test_a_package_cannot_be_named_like_an_option_or_an_order(identifier: str) -> None:
    package = {"registryType": "npm", "identifier": identifier}
    with pytest.raises(UsageError, match="is not a valid package name"):
        plan_install(convert(ServerDescription, {"name": "x", "packages": [package]}))


def test_what_nobody_here_can_start_is_refused() -> None:
    package = {"registryType": "nuget", "identifier": "Weather"}
    with pytest.raises(UsageError, match="only nuget"):
        plan_install(convert(ServerDescription, {"name": "x", "packages": [package]}))


def test_every_server_that_comes_with_the_program_makes_settings() -> None:
    raw = files("hermes.mcp.catalogue").joinpath("shipped.json").read_bytes()
    servers = decode(dict[str, tuple[ServerDescription, ...]], raw)["servers"]
    names = [each.name for each in servers]
    assert len(names) == len(set(names))
    for each in servers:
        plan = plan_install(each)
        filled = {blank.name: ["x"] for blank in plan.missing({})}
        convert(McpServerSettings, plan.settings(filled))
        assert each.short_name == each.name
        assert all(package.version for package in each.packages), each.name


@given(st.text(), st.text(min_size=1), st.text())
def test_any_name_becomes_a_short_one_or_none(owner: str, name: str, version: str) -> None:
    short = ServerDescription(name=f"{owner}/{name}", version=version).short_name
    assert len(short) <= 32
    assert all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in short)
