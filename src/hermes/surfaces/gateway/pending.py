"""Messages that wait for an answer, what all conversations share, and the port to the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hermes.app.app import App
from hermes.codec.values import Value, replace
from hermes.hosting.admission import Admission
from hermes.hosting.run_executor import RunExecutor
from hermes.journal.deliveries import DeliveryLedger
from hermes.surfaces.gateway.access import Access, Authorization
from hermes.surfaces.gateway.options import GatewayOptions
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.platform import Address, Inbound
from hermes.surfaces.gateway.post_attempt import LivePlatform
from hermes.surfaces.gateway.receipts import Receipts
from hermes.surfaces.gateway.routes import Routes

# The key of an event that no person sent: the rest is the key of the message in the journal.
INTERNAL = "internal:"


class Pending(Value):
    """A message of the inbox, as the ledger has it."""

    event: Inbound
    access: Access
    received_at: float = 0.0
    # The message is in the journal of this session.
    session_id: str = ""
    note: str = ""
    # Left by an earlier process: the message may be in the journal.
    is_recovered: bool = False
    # It came while a turn was running.
    was_queued: bool = False

    @property
    def is_internal(self) -> bool:
        return self.event.key.startswith(INTERNAL)

    @property
    def wants_answer(self) -> bool:
        """Whether the sender expects something of us."""
        return self.event.is_addressed and not self.event.reaction

    @property
    def run_id(self) -> str:
        if self.is_internal:
            return self.event.key.removeprefix(INTERNAL)
        return f"{self.event.address.platform}:{self.event.key}"


class GatewayControl(Protocol):
    """What a chat may ask of the process."""

    def platforms(self) -> Sequence[tuple[str, str]]:
        """The name and state of each platform."""
        ...

    async def pause(self, platform: str) -> str: ...

    async def resume(self, platform: str) -> str: ...

    async def restart(self, requester: Address) -> str: ...

    async def set_home(self, address: Address, name: str) -> str: ...


class ChatDeps(NamedTuple):
    """What all conversations share."""

    app: App
    ledger: DeliveryLedger
    outbox: Outbox
    routes: Routes
    executor: RunExecutor
    admission: Admission
    authorization: Authorization
    options: GatewayOptions
    receipts: Receipts

    def live(self, platform: str) -> LivePlatform:
        return self.outbox.platforms[platform]


def is_mergeable(pending: Pending) -> bool:
    """Whether the message may be a part of a longer one."""
    event = pending.event
    is_fresh = not (pending.is_recovered or pending.session_id or pending.is_internal)
    return is_fresh and event.quote is None and not event.choice and pending.wants_answer


def merged(group: Sequence[Pending]) -> Pending:
    """Messages that belong together as one."""
    first = group[0]
    event = replace(
        first.event,
        text="\n".join(each.event.text for each in group if each.event.text),
        files=tuple(file for each in group for file in each.event.files),
    )
    return replace(first, event=event)
