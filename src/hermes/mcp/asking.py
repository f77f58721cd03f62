"""Asks a person to fill in a server's form, field by field."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.values import JsonObject, JsonValue
from hermes.mcp.schemas import clean_description

Ask = Callable[[str, tuple[str, ...]], Awaitable[str | None]]
DECLINE = "decline"
YES, NO = "yes", "no"
_TRUE = frozenset((YES, "y", "true", "1", "on", "ok"))


class FormField:
    """One field: name, description and choices."""

    def __init__(self, name: str, schema: JsonObject, *, required: bool) -> None:
        self.name = name
        self.required = required
        self._schema = schema
        self._kind = schema.get("type", "string")
        self._values = _choices(schema)

    @property
    def choices(self) -> tuple[str, ...]:
        offered = (YES, NO) if self._kind == "boolean" else tuple(self._values)
        default_text = self.default_text
        if default_text is not None:
            # The default comes first.
            offered = (default_text, *(each for each in offered if each != default_text))
        return (*offered, DECLINE) if offered else ()

    @property
    def default_text(self) -> str | None:
        """Returns the text of the default value."""
        given = self._schema.get("default")
        match given:
            case None:
                return None
            case bool():
                return YES if given else NO
            case list():
                return ", ".join(self._label(each) for each in given)
            case _:
                return self._label(given)

    @property
    def words(self) -> str:
        title = self._schema.get("title") or self.name
        about = clean_description(str(self._schema.get("description") or ""))
        return f"{title}: {about}" if about else str(title)

    def value(self, text: str) -> JsonValue:
        """Converts the answer; ValueError when it is invalid."""
        match self._kind:
            case "boolean":
                return text.strip().lower() in _TRUE
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "array":
                return [self._one(each.strip()) for each in text.split(",") if each.strip()]
            case _:
                return self._one(text)

    def _label(self, value: JsonValue) -> str:
        return next((words for words, known in self._values.items() if known == value), str(value))

    def _one(self, text: str) -> JsonValue:
        if self._values and text not in self._values:
            raise ValueError(text)
        return self._values.get(text, text)


class ElicitationForm:
    def __init__(self, server: str, params: JsonObject) -> None:
        schema = params.get("requestedSchema") or {}
        required = schema.get("required") or ()
        self.intro = f"{server} asks: {clean_description(str(params.get('message', '')))}"
        self.fields = tuple(
            FormField(name, inner if isinstance(inner, dict) else {}, required=name in required)
            for name, inner in (schema.get("properties") or {}).items()
        )


async def fill_form(form: ElicitationForm, ask: Ask) -> JsonObject:
    """Returns the filled-in form, a decline or a cancellation."""
    if not form.fields:
        reply = await ask(form.intro, (YES, DECLINE))
        return {"action": _action(reply)} | ({"content": {}} if reply == YES else {})
    content: JsonObject = {}
    for field in form.fields:
        reply = await ask(f"{form.intro}\n{field.words}", field.choices)
        if reply is None or reply.strip().lower() == DECLINE:
            return {"action": _action(reply)}
        try:
            content[field.name] = field.value(reply)
        except ValueError:
            if field.required:
                return {"action": DECLINE}
    return {"action": "accept", "content": content}


def _action(reply: str | None) -> str:
    if reply is None:
        return "cancel"
    return "accept" if reply.strip().lower() in _TRUE else DECLINE


def _choices(schema: JsonObject) -> dict[str, JsonValue]:
    """Returns the choices by their labels."""
    inner = schema.get("items") if isinstance(schema.get("items"), dict) else schema
    inner = inner or {}
    titled = inner.get("oneOf") or inner.get("anyOf") or ()
    if titled:
        return {str(each.get("title", each.get("const"))): each.get("const") for each in titled}
    names = schema.get("enumNames") or ()
    values = inner.get("enum") or ()
    return {str(names[n] if n < len(names) else value): value for n, value in enumerate(values)}
