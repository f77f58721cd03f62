"""Continues background work after a restart: opens the sessions that it belongs to."""

from __future__ import annotations

import logging

from hermes.app.app import App
from hermes.codec.values import replace
from hermes.core.errors import HermesError
from hermes.delegation.background import owed_children
from hermes.hosting.request import continuation_request
from hermes.hosting.run_executor import RunExecutor

log = logging.getLogger(__name__)


async def continue_background_work(app: App, executor: RunExecutor, source: str) -> None:
    """Open the sessions of this source whose background tasks have not reported. Their tasks
    continue, and each result becomes a turn."""
    for owner in sorted({each.owner for each in await owed_children(app.journal)}):
        try:
            info = await app.archive.info(owner)
            if info.source.partition(":")[0] == source:
                request = replace(continuation_request(owner), attended=False, source=info.source)
                await executor.follow_processes(request)
        except HermesError as error:
            log.warning(
                "background work is not continued", extra={"session": owner, "why": str(error)}
            )
