"""How much of every request is fixed: by layer of the system text and by tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.session_prompt import session_prompt
from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.core.session_request import SessionRequest
from hermes.memory.snapshots import session_memory

if TYPE_CHECKING:
    from hermes.app.build import App

BYTES_PER_TOKEN = 4


class PromptSize(Value):
    """`tokens` are estimated: a quarter of the bytes, rounded up."""

    part: str
    name: str
    bytes: int
    tokens: int


async def prompt_sizes(app: App, opening: SessionRequest) -> tuple[PromptSize, ...]:
    """For a new session, opened now in this folder. Nothing is sent."""
    choice = await app.models.choose()
    memory = await session_memory(app.memory, opening)
    app.images.offer(only_look=True)
    text, names = session_prompt(
        app, opening, choice, app.cwd(opening), memory=memory.text, only_look=True
    )
    layers = [_size("system", layer.name, layer.text.encode()) for layer in text.layers]
    tools = [_size("tool", spec.name, encode(spec)) for spec in app.tools.choose(names).specs]
    return (*layers, *tools)


def _size(part: str, name: str, data: bytes) -> PromptSize:
    return PromptSize(
        part=part, name=name, bytes=len(data), tokens=-(-len(data) // BYTES_PER_TOKEN)
    )
