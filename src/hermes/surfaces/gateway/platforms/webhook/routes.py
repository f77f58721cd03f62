"""Routes of webhooks: their settings, templates and filters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError

MAX_OBJECT_CHARS, MAX_RAW_CHARS = 2000, 4000
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FIELD = re.compile(r"\{([A-Za-z0-9_][A-Za-z0-9_.-]*)\}")
_MISSING = object()


class Coalesce(Value):
    """Merges deliveries about one thing: the template `key` names it."""

    key: str
    window_seconds: float = 30.0
    max_wait_seconds: float = 300.0


class WebhookRoute(Value):
    """What happens with the deliveries of one webhook."""

    description: str = ""
    events: tuple[str, ...] = ()
    secret: str | tuple[str, ...] = ""
    prompt: str = ""
    filters: tuple[JsonObject, ...] = ()
    script: str = ""
    skills: tuple[str, ...] = ()
    deliver: str = "log"
    deliver_extra: dict[str, str | int] = {}
    chat_id: str | int = ""
    thread_id: str | int = ""
    deliver_only: bool = False
    cron_job: str = ""
    coalesce: Coalesce | None = None
    rate_limit: int = 30

    def secrets(self, general: str) -> tuple[str, ...]:
        own = (self.secret,) if isinstance(self.secret, str) else self.secret
        return tuple(filter(None, own)) or (general,)


def read_route(name: str, raw: object) -> WebhookRoute:
    """A route. ConfigError when it cannot work."""
    try:
        route = convert(WebhookRoute, raw)
    except DecodeError as error:
        raise ConfigError(f"The webhook {name!r} is not valid ({error}); correct it.") from error
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a valid webhook name; use a-z, 0-9, - and _.")
    if route.deliver_only and (route.deliver == "log" or route.cron_job):
        raise ConfigError(f"The webhook {name!r} only delivers; `deliver` must name a target.")
    return route


class RouteTable:
    """The routes of the settings, and those of the file of subscriptions, which may change."""

    def __init__(self, fixed: Mapping[str, object], path: Path) -> None:
        self._fixed = {name: read_route(name, raw) for name, raw in fixed.items()}
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._subscribed: dict[str, WebhookRoute] = {}

    def get(self, name: str) -> WebhookRoute | None:
        return self._fixed.get(name) or self._read().get(name)

    def items(self) -> Iterator[tuple[str, WebhookRoute]]:
        yield from {**self._read(), **self._fixed}.items()

    def _read(self) -> dict[str, WebhookRoute]:
        try:
            stat = self._path.stat()
        except OSError:
            return {}
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp != self._read_at:
            self._subscribed = read_subscriptions(self._path)
            self._read_at = stamp
        return self._subscribed


def read_subscriptions(path: Path) -> dict[str, WebhookRoute]:
    try:
        raw = decode(dict[str, Any], path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, DecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); correct or delete it.") from error
    return {name: read_route(name, each) for name, each in raw.items()}


def look_up(data: object, path: str) -> object:
    """The value at a path such as `a.b.0.c`."""
    for part in path.split("."):
        if isinstance(data, Mapping):
            # Header names have no case.
            data = data.get(part, data.get(part.lower(), _MISSING))
        elif isinstance(data, list) and part.isdecimal() and int(part) < len(data):
            data = data[int(part)]
        else:
            return _MISSING
    return data


def render(template: str, data: JsonObject) -> str:
    """The template with values; a field that is missing stays as it is."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "__raw__":
            return encode(data["payload"]).decode()[:MAX_RAW_CHARS]
        return _text(look_up_all(data, found[1]), found[0])

    return _FIELD.sub(value, template or "{__raw__}")


def look_up_all(data: JsonObject, path: str) -> object:
    """A field of the payload, or `event`, `headers.X` and other facts of the delivery."""
    found = look_up(data["payload"], path)
    return look_up(data, path) if found is _MISSING and path != "payload" else found


def _text(value: object, missing: str) -> str:
    if value is _MISSING:
        return missing
    if isinstance(value, dict | list):
        return encode(value).decode()[:MAX_OBJECT_CHARS]
    return value if isinstance(value, str) else encode(value).decode()


def passes(rule: JsonObject, data: JsonObject, folder: Path) -> bool:
    """Whether a delivery passes a filter. `folder` is where `in_file` finds its files."""
    if "all" in rule:
        return all(passes(each, data, folder) for each in rule["all"])
    if "any" in rule:
        return any(passes(each, data, folder) for each in rule["any"])
    if "not" in rule:
        return not passes(rule["not"], data, folder)
    value = look_up_all(data, str(rule.get("field", "")))
    operators = [name for name in rule if name not in ("field", "op", "value")]
    name = str(rule.get("op", operators[0] if operators else "exists"))
    return _compare(name, value, rule.get("value", rule.get(name)), folder)


def _compare(name: str, value: object, wanted: Any, folder: Path) -> bool:
    if name in ("exists", "missing"):
        # `exists: false` means missing.
        return ((value is not _MISSING) is (name == "exists")) is (wanted is not False)
    if value is _MISSING:
        return name == "not_equals"
    match name:
        case "equals":
            return bool(value == wanted)
        case "not_equals":
            return bool(value != wanted)
        case "contains":
            return wanted in value if isinstance(value, list | dict) else str(wanted) in str(value)
        case "in":
            return value in wanted
        case "in_file":
            return str(value) in _lines(folder, str(wanted))
        case "regex":
            return re.search(str(wanted), str(value)) is not None
        case _:
            raise ConfigError(f"A webhook filter has the unknown operator {name!r}; correct it.")


def _lines(folder: Path, name: str) -> frozenset[str]:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigError(f"A webhook filter names {name!r}, which is outside of {folder}.")
    try:
        return frozenset(line.strip() for line in path.read_text("utf-8").splitlines())
    except OSError as error:
        raise ConfigError(f"A webhook filter cannot read {path} ({error.strerror}).") from error
