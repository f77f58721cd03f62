from __future__ import annotations

from typing import Any

from hermes.codec.values import JsonObject
from hermes.mcp.server_requests import fill_form

SCHEMA: JsonObject = {
    "properties": {
        "name": {"type": "string", "description": "Who?", "default": "Ada"},
        "age": {"type": "integer"},
        "keen": {"type": "boolean", "default": True},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
        "days": {"type": "array", "items": {"enum": ["mon", "tue"]}},
    },
    "required": ["age"],
}


async def filled(*words: str | None, schema: JsonObject = SCHEMA) -> dict[str, Any]:
    left = list(words)
    params = {"message": "Tell me", "requestedSchema": schema}

    async def ask(question: str, choices: tuple[str, ...]) -> str | None:
        said = left.pop(0)
        return choices[0] if said == "first" else said

    return await fill_form("little", params, ask)


async def test_a_form_is_filled_in_with_values_of_the_right_kinds() -> None:
    assert await filled("Bo", "42", "no", "Red", "mon, tue") == {
        "action": "accept",
        "content": {"name": "Bo", "age": 42, "keen": False, "colour": "r", "days": ["mon", "tue"]},
    }


async def test_what_holds_anyway_is_offered_first() -> None:
    answer = await filled("first", "1", "first", "first", "mon")
    assert answer["content"]["name"] == "Ada"
    assert answer["content"]["keen"] is True


async def test_a_person_may_decline_or_be_away() -> None:
    assert await filled("Bo", "decline") == {"action": "decline"}
    assert await filled(None) == {"action": "cancel"}
    assert await filled("Bo", "not a number") == {"action": "decline"}


async def test_a_form_without_fields_is_a_question() -> None:
    assert await filled("yes", schema={}) == {"action": "accept", "content": {}}
    assert await filled("decline", schema={}) == {"action": "decline"}
