"""Delivers notices of background processes to sessions that no client keeps open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from hashlib import blake2b

from hermes.codec.values import replace
from hermes.core.errors import HermesError
from hermes.core.ports import ProcessNotice
from hermes.core.session import Session
from hermes.hosting.request import TurnRequest
from hermes.hosting.session_pool import SessionPool, SessionSlot

log = logging.getLogger(__name__)

# How often to check whether a process is still to be reported: a tool may have reported it.
CHECK_SECONDS = 5.0

# Runs a turn with this id to its end.
RunTurn = Callable[[str, TurnRequest], Awaitable[None]]


class ProcessNotices:
    """Keeps a session open while a background process of it is to be reported. Each notice becomes
    a turn of its own; its id is made from the key of the notice, so that it is delivered once."""

    def __init__(self, pool: SessionPool, run_turn: RunTurn) -> None:
        self._pool = pool
        self._run_turn = run_turn
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def follow(self, session: Session, request: TurnRequest) -> None:
        """Start to follow the processes of a session, if there are any. `request` is the turn that
        may have started them."""
        if session.id in self._tasks or not await _is_pending(session):
            return
        # Before the caller releases the session, which would close it.
        slot = self._pool.acquire(session.id)
        task = asyncio.ensure_future(self._deliver_all(slot, session, request))
        self._tasks[session.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(session.id, None))

    async def close(self) -> None:
        """Stop following. Processes run on; the next run of their session follows them again."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver_all(self, slot: SessionSlot, session: Session, request: TurnRequest) -> None:
        try:
            async with aclosing(session.notices()) as notices:  # type: ignore[type-var]
                following: asyncio.Future[ProcessNotice] | None = None
                while True:
                    if following is None:
                        # Asking for the next notice marks the last one as delivered.
                        following = asyncio.ensure_future(anext(notices))
                        await asyncio.sleep(0)
                    if not following.done() and not await _is_pending(session):
                        break
                    done, _ = await asyncio.wait((following,), timeout=CHECK_SECONDS)
                    if done:
                        await self._deliver(session.id, following.result(), request)
                        following = None
                following.cancel()
                await asyncio.wait((following,))
        except HermesError as error:
            log.warning("cannot report a background process", extra={"error": str(error)})
        finally:
            await self._pool.release(slot)

    async def _deliver(self, session_id: str, notice: ProcessNotice, request: TurnRequest) -> None:
        digest = blake2b(notice.key.encode(), digest_size=6).hexdigest()
        turn = replace(
            request,
            text=notice.text,
            origin=notice.origin,
            images=(),
            instructions="",
            history=(),
            model="",
            provider="",
            create="never",
            attended=False,
            exclusive=True,
            is_retry=True,
        )
        await self._run_turn(f"run_{session_id}_{digest}", turn)


async def _is_pending(session: Session) -> bool:
    return any(each.is_watched for each in await session.workspace.processes.list())
