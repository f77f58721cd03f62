"""Key bindings of the chat."""

from __future__ import annotations

import asyncio
from typing import Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, Filter, has_completions, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.surfaces.cli.chat.pastes import Pastes
from hermes.surfaces.cli.chat.screen import ScreenDelegate

# No space is added after these endings.
UNFINISHED = (" ", "/", ":", "=")


class Typing(Protocol):
    """The state of the input that keys depend on. `in_flow`: the user was typing when a question
    opened and has not paused since, so these keys belong to the draft."""

    face: ScreenDelegate
    pastes: Pastes

    @property
    def in_flow(self) -> bool: ...

    @property
    def just_started(self) -> bool:
        """Whether keys may still arrive that were pressed before the prompt appeared."""
        ...

    def add_to_draft(self, text: str) -> None: ...

    def send(self) -> None: ...


def bindings(typing: Typing) -> KeyBindings:
    keys = KeyBindings()
    in_input = has_focus(DEFAULT_BUFFER)
    asking = Condition(lambda: typing.face.asking())
    is_empty = Condition(lambda: not get_app().current_buffer.text)
    _write_with(keys, typing, in_input)
    _complete_with(keys, in_input)
    _leave_with(keys, typing, in_input, is_empty)

    @keys.add("c-g", filter=in_input & ~asking)
    def _(event: KeyPressEvent) -> None:
        _ = event.app.create_background_task(edit(event.current_buffer))

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
        event.app.invalidate()

    # Of several matching bindings, the last one wins.
    _take_back_with(keys, typing, in_input & is_empty & ~asking)
    choosing = asking & Condition(lambda: not typing.face.hiding())
    for name in (*"123456789", "left", "right", "up", "down"):
        _answer_with(keys, name, typing, in_input & choosing & is_empty)

    @keys.add("escape", filter=in_input & asking, eager=True)
    def _(event: KeyPressEvent) -> None:
        typing.face.key("escape")

    in_flow = Condition(lambda: typing.face.asking() and typing.in_flow)
    _draft_with(keys, typing, in_input & in_flow)
    return keys


def _write_with(keys: KeyBindings, typing: Typing, when: Filter) -> None:
    @keys.add("enter", filter=when)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\" and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            typing.send()

    @keys.add("c-j", filter=when)
    @keys.add("escape", "enter", filter=when)
    def _(event: KeyPressEvent) -> None:
        if typing.just_started:
            # Enter, pressed before the terminal was in raw mode.
            typing.send()
        else:
            event.current_buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=when)
    def _(event: KeyPressEvent) -> None:
        shown = typing.pastes.placeholder(event.data)
        event.current_buffer.insert_text(shown)
        _ = event.app.create_background_task(asyncio.to_thread(typing.pastes.keep, shown))


def _complete_with(keys: KeyBindings, when: Filter) -> None:
    @keys.add("tab", filter=when & Condition(_has_ghost) & ~has_completions)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.suggestion:
            buffer.insert_text(buffer.suggestion.text)

    @keys.add("tab", filter=when & Condition(_has_one_completion))
    def _(event: KeyPressEvent) -> None:
        _take_only(event.current_buffer)


def _leave_with(keys: KeyBindings, typing: Typing, when: Filter, is_empty: Filter) -> None:
    @keys.add("c-c", filter=when)
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        typing.face.interrupt()

    @keys.add("c-d", filter=when & is_empty)
    def _(event: KeyPressEvent) -> None:
        typing.face.leave()


def _has_ghost() -> bool:
    buffer = get_app().current_buffer
    return (
        bool(buffer.suggestion and buffer.suggestion.text) and buffer.document.is_cursor_at_the_end
    )


def _has_one_completion() -> bool:
    state = get_app().current_buffer.complete_state
    return state is not None and len(state.completions) == 1


def _take_only(buffer: Buffer) -> None:
    """Accept the only completion."""
    state = buffer.complete_state
    assert state is not None
    if state.complete_index is None:
        buffer.apply_completion(state.completions[0])
    buffer.complete_state = None
    if not buffer.text.endswith(UNFINISHED) and buffer.document.is_cursor_at_the_end:
        buffer.insert_text(" ")


async def edit(buffer: Buffer) -> None:
    await buffer.open_in_editor()


def _take_back_with(keys: KeyBindings, typing: Typing, when: Filter) -> None:
    when &= Condition(lambda: typing.face.waiting())

    @keys.add("up", filter=when)
    def _(event: KeyPressEvent) -> None:
        typing.face.take_back(edit=True)

    @keys.add("escape", filter=when)
    def _(event: KeyPressEvent) -> None:
        typing.face.take_back(edit=False)


def _answer_with(keys: KeyBindings, name: str, typing: Typing, when: Filter) -> None:
    @keys.add(name, filter=when)
    def _(event: KeyPressEvent) -> None:
        if typing.in_flow and name.isdigit():
            typing.add_to_draft(name)
        else:
            typing.face.key(name)


def _draft_with(keys: KeyBindings, typing: Typing, when: Filter) -> None:
    @keys.add(Keys.Any, filter=when)
    def _(event: KeyPressEvent) -> None:
        typing.add_to_draft(event.data)

    @keys.add("enter", filter=when)
    @keys.add(Keys.BracketedPaste, filter=when)
    def _(event: KeyPressEvent) -> None:
        typing.add_to_draft(typing.pastes.placeholder(event.data) if len(event.data) > 1 else "")
