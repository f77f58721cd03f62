"""Holds the lock of auth.json until it is killed: `python -m … HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes.credentials.auth_file import hold_lock


async def main() -> None:
    async with hold_lock(Path(sys.argv[1]) / "auth.lock"):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main())
