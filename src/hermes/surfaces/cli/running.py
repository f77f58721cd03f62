"""One run of the command line, from arguments to exit code, with every error in one sentence."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys

from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.surfaces.cli.options import check, plain_options

NEAR = 3
LINE = 100


def run(arguments: list[str]) -> int:
    """Exit codes: 0 well, 1 failed, 2 wrong usage, 130 interrupted. A closed pipe ends quietly."""
    _prepare_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has left; there is nobody to tell.
        _drop_unread()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if "-v" in arguments or "--verbose" in arguments:
            import traceback

            print(_without_secrets(traceback.format_exc()), end="", file=sys.stderr)
        code = _complain(error)
        _drop_unread()
        return code


def _dispatch(arguments: list[str]) -> int:
    options = plain_options(arguments)
    if options is not None:
        check(options)
        if options["prompt"] is None:
            from hermes.surfaces.cli.chat.entrance import run_chat

            _heed_interrupts()
            return run_chat(options)
        from hermes.surfaces.cli.oneshot import run_oneshot

        _heed_interrupts()
        return run_oneshot(options)
    from hermes.surfaces.cli.root import invoke

    _heed_interrupts()
    return invoke(arguments)


def _heed_interrupts() -> None:
    """From here on Ctrl+C is an exception, unless the caller wants it to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _prepare_streams() -> None:
    """A stream that was closed by the caller leads nowhere, and what the terminal has no letters
    for is shown as a question mark."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _drop_unread() -> None:
    """Let what nobody takes go nowhere, so that closing the streams cannot fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(error: Exception) -> int:
    from hermes.commands.visible import clean, one_line
    from hermes.surfaces.cli.style import styled

    message, near = _words(error)
    message = _without_secrets(message)
    try:
        print(f"{styled('error:', 'error', to=sys.stderr)} {clean(message)}", file=sys.stderr)
        for name in near:
            print(f"  {one_line(name, LINE)}", file=sys.stderr)
    except BrokenPipeError:
        _drop_unread()
    return 2 if isinstance(error, UsageError) else 1


def _without_secrets(text: str) -> str:
    from hermes.credentials.redaction import said_safely

    return said_safely(text)


def _words(error: Exception) -> tuple[str, tuple[str, ...]]:
    """What to say of an error, and names that come near what was meant."""
    match error:
        case NotFound(near=near):
            return str(error), tuple(name for name in near if name not in str(error))[:NEAR]
        case HermesError():
            return str(error), ()
        case OSError(filename=None, errno=errno.ENOSPC):
            return "There is no space left for what is written; free some and try again.", ()
        case OSError(filename=str() as path, strerror=str() as why):
            return f"{path} cannot be used ({why.lower()}); choose another place.", ()
        case _:
            words = f"Hermes has failed ({type(error).__name__}: {error})"
            return f"{words}; `hermes --verbose …` shows where, please report it.", ()
