"""A form that a server wants filled in, put to the person one field at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.values import JsonObject, JsonValue
from hermes.mcp.schemas import clean_description

Ask = Callable[[str, tuple[str, ...]], Awaitable[str | None]]
DECLINE = "decline"
YES, NO = "yes", "no"
_TRUE = frozenset((YES, "y", "true", "1", "on", "ok"))


class Field:
    """One thing to know: its name, the words about it and the choices, if there are some."""

    def __init__(self, name: str, schema: JsonObject, *, required: bool) -> None:
        self.name = name
        self.required = required
        self._schema = schema
        self._kind = schema.get("type", "string")
        self._values = _choices(schema)

    @property
    def choices(self) -> tuple[str, ...]:
        offered = (YES, NO) if self._kind == "boolean" else tuple(self._values)
        usual = self.usual
        if usual is not None:
            # What the server would take anyway stands first.
            offered = (usual, *(each for each in offered if each != usual))
        return (*offered, DECLINE) if offered else ()

    @property
    def usual(self) -> str | None:
        """The words for the value that holds unless the person says otherwise."""
        given = self._schema.get("default")
        match given:
            case None:
                return None
            case bool():
                return YES if given else NO
            case list():
                return ", ".join(self._shown(each) for each in given)
            case _:
                return self._shown(given)

    @property
    def words(self) -> str:
        title = self._schema.get("title") or self.name
        about = clean_description(str(self._schema.get("description") or ""))
        return f"{title}: {about}" if about else str(title)

    def value(self, text: str) -> JsonValue:
        """What the words mean; ValueError when they mean nothing here."""
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

    def _shown(self, value: JsonValue) -> str:
        return next((words for words, held in self._values.items() if held == value), str(value))

    def _one(self, text: str) -> JsonValue:
        if self._values and text not in self._values:
            raise ValueError(text)
        return self._values.get(text, text)


class Form:
    def __init__(self, server: str, params: JsonObject) -> None:
        schema = params.get("requestedSchema") or {}
        required = schema.get("required") or ()
        self.intro = f"{server} asks: {clean_description(str(params.get('message', '')))}"
        self.fields = tuple(
            Field(name, inner if isinstance(inner, dict) else {}, required=name in required)
            for name, inner in (schema.get("properties") or {}).items()
        )


async def answered(form: Form, ask: Ask) -> JsonObject:
    """The filled-in form, or that the person does not want to, or is not there."""
    if not form.fields:
        said = await ask(form.intro, (YES, DECLINE))
        return {"action": _action(said)} | ({"content": {}} if said == YES else {})
    content: JsonObject = {}
    for field in form.fields:
        said = await ask(f"{form.intro}\n{field.words}", field.choices)
        if said is None or said.strip().lower() == DECLINE:
            return {"action": _action(said)}
        try:
            content[field.name] = field.value(said)
        except ValueError:
            if field.required:
                return {"action": DECLINE}
    return {"action": "accept", "content": content}


def _action(said: str | None) -> str:
    if said is None:
        return "cancel"
    return "accept" if said.strip().lower() in _TRUE else DECLINE


def _choices(schema: JsonObject) -> dict[str, JsonValue]:
    """What may be chosen, by the words that are shown for it."""
    inner = schema.get("items") if isinstance(schema.get("items"), dict) else schema
    inner = inner or {}
    titled = inner.get("oneOf") or inner.get("anyOf") or ()
    if titled:
        return {str(each.get("title", each.get("const"))): each.get("const") for each in titled}
    names = schema.get("enumNames") or ()
    values = inner.get("enum") or ()
    return {str(names[n] if n < len(names) else value): value for n, value in enumerate(values)}
