"""The way in. Answers what needs nothing by itself and loads the rest only when it is wanted."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit code of one run of `hermes`."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"], ["version"]):
        from hermes import __version__

        python = ".".join(map(str, sys.version_info[:3]))
        print(f"hermes {__version__} (Python {python})")
        return 0
    from hermes.surfaces.cli.root import run

    return run(arguments)
