"""Assembles streamed tool calls in the chat completions format, whose fields differ by server."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject
from hermes.core.prompt import Delta
from hermes.providers.wire.draft import CallBuilder, ReplyBuilder
from hermes.providers.wire.loose import object_of, parse_json


class CallAssembler:
    """A fragment belongs to the call with its index, or else to the newest call. It starts a new
    call when it has a name plus an id or arguments that cannot belong to the matched call: some
    servers use index 0 for every call, or send no index."""

    def __init__(self, draft: ReplyBuilder) -> None:
        self._draft = draft
        self._by_index: dict[int, CallBuilder] = {}
        self._last: CallBuilder | None = None

    def add(self, piece: JsonObject) -> Iterator[Delta]:
        function = object_of(piece.get("function"))
        id, name = _text(piece.get("id")), _text(function.get("name"))
        index, arguments = piece.get("index"), function.get("arguments")
        wish = self._find(index, id)
        if wish is None or (name and _starts_new_call(wish, id, name, arguments)):
            yield from self._draft.flush()
            doubtful = wish is not None and not id and name == wish.name
            wish = self._draft.add_call(id)
            wish.doubtful = doubtful
            if isinstance(index, int):
                self._by_index[index] = wish
        self._last = wish
        _append_name(wish, name)
        wish.id = wish.id or id
        if arguments is not None:
            _append_arguments(wish, arguments)
            if not wish.is_echo:
                yield from self._draft.announce(wish)

    def _find(self, index: object, id: str) -> CallBuilder | None:
        if isinstance(index, int):
            return self._by_index.get(index)
        if id:
            same = [wish for wish in self._draft.calls if wish.id == id]
            return same[0] if same else self._last
        return self._last


def _starts_new_call(wish: CallBuilder, id: str, name: str, arguments: object) -> bool:
    if id and wish.id:
        return id != wish.id
    if wish.given_arguments is not None:
        return arguments is not None
    if not wish.size:
        return False
    return name != wish.name or (_is_complete(wish.raw) and _starts_over(arguments, wish.raw))


def _is_complete(raw: str) -> bool:
    return raw.rstrip().endswith("}") and isinstance(
        parse_json(raw.encode("utf-8", "replace")), dict
    )


def _starts_over(arguments: object, raw: str) -> bool:
    if isinstance(arguments, str):
        starts = not arguments or arguments.lstrip().startswith("{")
        return starts and not (arguments and arguments.startswith(raw))
    return isinstance(arguments, dict)


def _append_name(wish: CallBuilder, name: str) -> None:
    """A name may arrive whole, in fragments, or whole with every fragment."""
    if not name or name == wish.name:
        return
    wish.name = name if name.startswith(wish.name) else wish.name + name


def _append_arguments(wish: CallBuilder, piece: object) -> None:
    if isinstance(piece, dict):
        wish.given_arguments = piece
    if not isinstance(piece, str) or not piece:
        return
    # A JSON object hardly ever continues with its own beginning, so such a fragment is a full
    # resend.
    if wish.size and len(piece) >= wish.size and piece.startswith(wish.raw):
        wish.replace(piece)
    else:
        wish.append(piece)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
