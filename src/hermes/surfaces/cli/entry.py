"""The way in. Answers what needs nothing by itself and loads the rest only when it is wanted."""

from __future__ import annotations

import gc
import os
import sys

# Loading modules makes many objects that live for ever: looking through them is time lost.
NEW_OBJECTS = 50_000


def main() -> int:
    """The exit code of one run of `hermes`."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"], ["version"]):
        from hermes.version import __version__

        python = ".".join(map(str, sys.version_info[:3]))
        print(f"hermes {__version__} (Python {python})")
        return 0
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While modules load there is nothing to put in order: Ctrl+C ends the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(NEW_OBJECTS)
    from hermes.codec import expressions

    expressions.remember()
    from hermes.surfaces.cli.running import run

    code = run(arguments)
    expressions.keep()
    sys.stdout.flush()
    sys.stderr.flush()
    # All is written and closed; taking the modules apart one by one would only cost time.
    os._exit(code)


def acp() -> int:
    """`hermes-acp`, which editors start."""
    sys.argv.insert(1, "acp")
    return main()
