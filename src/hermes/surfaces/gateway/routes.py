"""Routes: which session a conversation is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from hermes.codec.json import decode, encode
from hermes.codec.values import Value, replace
from hermes.journal.deliveries import DeliveryLedger
from hermes.surfaces.gateway.options import ToolProgressLevel
from hermes.surfaces.gateway.platform import Address, ChatType, Inbound, Sender


class RouteInfo(Value):
    """What the gateway stores about a conversation."""

    address: Address
    chat_type: ChatType
    created_at: float
    updated_at: float
    # When it was used before its newest message.
    used_before: float = 0.0
    name: str = ""
    # Who wrote last.
    sender: Sender | None = None
    # Why the session began by itself; "" once the person knows.
    reset_reason: str = ""
    # Sessions of this chat before the present one, newest last.
    earlier: tuple[str, ...] = ()
    model: str = ""
    provider: str = ""
    tool_progress: ToolProgressLevel | Literal[""] = ""


class ChatRoute(Value):
    """The session of a conversation."""

    key: str
    session_id: str
    info: RouteInfo


MAX_EARLIER = 50


class Routes:
    """The routes of a gateway, cached: only this process changes them."""

    def __init__(self, ledger: DeliveryLedger, new_session_id: Callable[[], str]) -> None:
        self._ledger = ledger
        self._new_session_id = new_session_id
        self._known: dict[str, ChatRoute] = {}

    async def find(self, key: str) -> ChatRoute | None:
        if key in self._known:
            return self._known[key]
        row = await self._ledger.route(key)
        if row is None:
            return None
        info = decode(RouteInfo, row.body)
        self._known[key] = ChatRoute(key=key, session_id=row.session_id, info=info)
        return self._known[key]

    async def all(self) -> tuple[ChatRoute, ...]:
        """All routes, the most recently used first."""
        return tuple(
            ChatRoute(key=row.key, session_id=row.session_id, info=decode(RouteInfo, row.body))
            for row in await self._ledger.routes()
        )

    async def open(self, key: str, event: Inbound, now: float) -> ChatRoute:
        """The route of the conversation, which is used now."""
        route = await self.find(key)
        if route is None:
            info = RouteInfo(
                address=event.address,
                chat_type=event.chat_type,
                created_at=now,
                updated_at=now,
                used_before=now,
                name=event.chat_name or event.sender.name,
                sender=event.sender,
            )
            return await self._store(key, self._new_session_id(), info)
        info = replace(
            route.info, updated_at=now, used_before=route.info.updated_at, sender=event.sender
        )
        return await self._store(key, route.session_id, info)

    async def renew(self, route: ChatRoute, now: float, *, reason: str = "") -> ChatRoute:
        """Continue in a new session. The choice of the model ends with the old one. With `reason`,
        the person does not know it yet."""
        earlier = (*route.info.earlier, route.session_id)[-MAX_EARLIER:]
        info = replace(
            route.info,
            created_at=now,
            updated_at=now,
            earlier=earlier,
            model="",
            provider="",
            reset_reason=reason,
        )
        return await self._store(route.key, self._new_session_id(), info)

    async def switch(self, route: ChatRoute, session_id: str, now: float) -> ChatRoute:
        """Continue in another session of this chat."""
        others = [each for each in route.info.earlier if each != session_id]
        info = replace(route.info, updated_at=now, earlier=(*others, route.session_id))
        return await self._store(route.key, session_id, info)

    async def update(self, route: ChatRoute, **changes: object) -> ChatRoute:
        return await self._store(route.key, route.session_id, replace(route.info, **changes))

    async def prune(self, days: float) -> None:
        """Forget unused routes and finished rows of the ledger."""
        await self._ledger.prune(routes_older_than=days * 86_400)
        self._known.clear()

    async def _store(self, key: str, session_id: str, info: RouteInfo) -> ChatRoute:
        await self._ledger.set_route(key, session_id, encode(info).decode())
        self._known[key] = ChatRoute(key=key, session_id=session_id, info=info)
        return self._known[key]
