"""Limits how many runs are active, and queues the others fairly."""

from __future__ import annotations

import asyncio
from collections import deque

from hermes.core.errors import AdmissionRefused

RETRY_SECONDS = 5.0


class AdmissionTicket:
    """The place of one run: queued first, then active. The owner must release it."""

    def __init__(self, admission: Admission, client: str) -> None:
        self.client = client
        self.is_active = False
        self._admission = admission
        self._is_released = False

    @property
    def must_wait(self) -> bool:
        return not self.is_active and not self._admission.has_capacity

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until the run may start; AdmissionRefused after `seconds`, or when the process
        stops."""
        if self._admission.is_draining:
            raise draining_error()
        if self._admission.has_capacity:
            self._admission.activate(self)
            return
        capacity = self._admission.enqueue(self)
        try:
            async with asyncio.timeout(seconds):
                await capacity
        except TimeoutError as error:
            message = f"No capacity for this run became free within {seconds:g} seconds."
            raise AdmissionRefused(message, retry_after=RETRY_SECONDS) from error
        finally:
            if capacity.done() and not capacity.cancelled():
                # Mark the exception as retrieved: this task may have been cancelled meanwhile.
                capacity.exception()
            capacity.cancel()

    def release(self) -> None:
        """Free the place; further calls do nothing."""
        if not self._is_released:
            self._is_released = True
            self._admission.leave(self)


class Admission:
    """Limits the runs of a process: at most `max_active` are active (0: no limit) and `max_queued`
    wait. Capacity that becomes free goes to the clients in turn, so that one with many runs does
    not delay others. A run that waits for capacity longer than `wait_seconds` is refused, unless it
    is persistent."""

    def __init__(
        self, *, max_active: int = 0, max_queued: int = 0, wait_seconds: float = 30.0
    ) -> None:
        self.wait_seconds = wait_seconds
        self.active = 0
        self.queued = 0
        self.is_draining = False
        self._max_active = max_active
        self._max_queued = max_queued
        self._waiting: dict[str, deque[tuple[AdmissionTicket, asyncio.Future[None]]]] = {}

    @property
    def has_capacity(self) -> bool:
        return not self._max_active or (self.active < self._max_active and not self._waiting)

    def check(self) -> None:
        """Raise AdmissionRefused if a new run would be refused now."""
        if self.is_draining:
            raise draining_error()
        most = self._max_active + self._max_queued
        if self._max_active and self.active + self.queued >= most:
            message = f"{self.active} runs are active and {self.queued} wait, which is the maximum."
            raise AdmissionRefused(message, retry_after=RETRY_SECONDS)

    def enter(self, client: str, *, is_continued: bool = False) -> AdmissionTicket:
        """Queue a run; raise AdmissionRefused. A continued run was admitted before and is not
        refused."""
        if not is_continued:
            self.check()
        self.queued += 1
        return AdmissionTicket(self, client)

    def drain(self) -> None:
        """Refuse all runs that are not active yet."""
        self.is_draining = True
        waiting, self._waiting = self._waiting, {}
        for queue in waiting.values():
            for _, capacity in queue:
                if not capacity.done():
                    capacity.set_exception(draining_error())

    def activate(self, ticket: AdmissionTicket) -> None:
        ticket.is_active = True
        self.queued -= 1
        self.active += 1

    def enqueue(self, ticket: AdmissionTicket) -> asyncio.Future[None]:
        """Completes when the ticket is active."""
        capacity: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ticket.client, deque()).append((ticket, capacity))
        return capacity

    def leave(self, ticket: AdmissionTicket) -> None:
        if ticket.is_active:
            self.active -= 1
        else:
            self.queued -= 1
        while self._waiting and self.active < self._max_active:
            client, queue = next(iter(self._waiting.items()))
            # The client moves to the end, so that the others come first.
            del self._waiting[client]
            following, capacity = queue.popleft()
            if queue:
                self._waiting[client] = queue
            if not capacity.done():
                self.activate(following)
                capacity.set_result(None)


def draining_error() -> AdmissionRefused:
    message = "The server is shutting down."
    return AdmissionRefused(message, retry_after=RETRY_SECONDS, is_draining=True)
