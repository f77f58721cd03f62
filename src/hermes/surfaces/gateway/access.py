"""Who may talk to the gateway: the decision about an event, and the port that makes it."""

from __future__ import annotations

from typing import Literal, Protocol

from hermes.codec.values import Value
from hermes.core.effects import Principal
from hermes.surfaces.gateway.platform import ChatType, Inbound


class Access(Value):
    """Whether the sender of an event is served, and as whom."""

    kind: Literal["allowed", "pair", "ignore"]
    principal: Principal = "guest"
    is_admin: bool = False
    reason: str = ""
    platform: str = ""


class Authorization(Protocol):
    """Decides about events. `decide` and `may_run` do no I/O."""

    def decide(self, event: Inbound) -> Access: ...

    def may_run(self, access: Access, command: str, chat_type: ChatType) -> bool: ...

    async def pairing_text(self, event: Inbound) -> str:
        """What a stranger gets to read; "" for nothing."""
        ...
