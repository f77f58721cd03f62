"""Holds the lock of auth.json until it is killed: `python -m … HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes.config.home import Home
from hermes.credentials.auth_file import HomeLock


async def main() -> None:
    home = Home(Path(sys.argv[1]))
    async with HomeLock(home, home.root / "auth.lock").hold():
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main())
