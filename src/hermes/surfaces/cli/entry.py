"""The entry point. Answers `--version` itself and loads the rest only when needed."""

from __future__ import annotations

import gc
import os
import sys

# Module objects live forever, so frequent garbage collection during imports wastes time.
NEW_OBJECTS = 100_000


def main() -> int:
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"], ["version"]):
        from hermes.version import __version__

        python = ".".join(map(str, sys.version_info[:3]))
        print(f"hermes {__version__} (Python {python})")
        return 0
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While modules load there is nothing to clean up: Ctrl+C ends the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(NEW_OBJECTS)
    try:
        from hermes.surfaces.cli.running import flush_output, run
    except (MemoryError, ImportError, OSError) as error:
        return _report_failed_start(error)
    code = run(arguments)
    flush_output()
    # Everything is flushed and closed; skip the interpreter shutdown.
    os._exit(code)


def _report_failed_start(error: Exception) -> int:
    """Report that this machine lacks memory or file descriptors; any other error is raised."""
    is_shortage = isinstance(error, MemoryError) or "failed to map" in str(error)
    if not is_shortage and getattr(error, "errno", None) is None:
        raise error
    os.write(
        2,
        b"error: Hermes cannot start: too little memory or too few open files are allowed; "
        b"raise the limits (`ulimit -v`, `ulimit -n`).\n",
    )
    return 1


def acp() -> int:
    """`hermes-acp`, for editors."""
    sys.argv.insert(1, "acp")
    return main()


if __name__ == "__main__":
    sys.exit(main())
