"""A process that stays in a session, as a chat does: says its words, then waits for the end of its
input. Run as a module with the id of a session (or "-") and, if wanted, words."""

from __future__ import annotations

import asyncio
import os
import sys

from hermes.app.start import start
from hermes.core.commands import Say
from hermes.core.session_request import SessionRequest

DEAF = "--deaf"


async def hold(session_id: str, words: str, *, attends: bool) -> None:
    """Tells the session's id once it is there and the words are answered. One that does not
    attend leaves alone what others bring."""
    opening = SessionRequest(source="cli", attended=True, resume=session_id)
    async with start({"model": "test", "provider": "custom", "yolo": True}) as app:
        session = await app.open(opening)
        if attends:
            app.start_session_tasks(session)
        session.continue_unfinished()
        if words:
            await session.send(Say(text=words))
            await session.wait_until_idle()
        os.write(1, f"{session.id}\n".encode())
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    words = [word for word in sys.argv[1:] if word != DEAF]
    session_id = "" if words[0] == "-" else words[0]
    asyncio.run(hold(session_id, " ".join(words[1:]), attends=DEAF not in sys.argv))


if __name__ == "__main__":
    main()
