"""Runs the command line: arguments in, exit code out, every error in one sentence."""

from __future__ import annotations

import io
import os
import signal
import sys

from hermes.core.errors import (
    HermesError,
    InvalidConfig,
    NotFound,
    UsageError,
    describe_shortage,
)
from hermes.surfaces.cli.options import check_conflicts, plain_options

MOST_SUGGESTIONS = 3
LONGEST_NAME = 100


def run(arguments: list[str]) -> int:
    """Exit codes: 0 success, 1 failure, 2 invalid usage or settings, 130 interrupted. A closed
    pipe is not an error."""
    _prepare_streams()
    try:
        code = _dispatch(arguments)
        flush_output()
        return code
    except BrokenPipeError:
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if shortage := describe_shortage(error):
            # Nothing may be loaded or opened for this line.
            os.write(2, f"error: {shortage}\n".encode())
            _discard_output()
            return 1
        if "-v" in arguments or "--verbose" in arguments:
            import traceback

            print(_without_secrets(traceback.format_exc()), end="", file=sys.stderr)
        code = _print_error(error)
        _discard_output()
        return code


def _dispatch(arguments: list[str]) -> int:
    # Chats and one-shot runs with common options start without importing click.
    options = plain_options(arguments)
    if options is not None:
        check_conflicts(options)
        if options["prompt"] is None:
            from hermes.surfaces.cli.chat.startup import run_chat

            _enable_interrupts()
            return run_chat(options)
        from hermes.surfaces.cli.oneshot import run_oneshot

        _enable_interrupts()
        return run_oneshot(options)
    from hermes.surfaces.cli.root import invoke

    _enable_interrupts()
    return invoke(arguments)


def _enable_interrupts() -> None:
    """Let Ctrl+C raise KeyboardInterrupt from here on, unless the caller ignores SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _prepare_streams() -> None:
    """Replace closed streams by /dev/null, and unencodable characters by a question mark."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def flush_output() -> None:
    """Flush the streams. A server that speaks over stdout closes it when its client leaves."""
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()


def _discard_output() -> None:
    """Discard output that cannot be written, so that closing the streams does not fail."""
    for stream in (sys.stdout, sys.stderr):
        if stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_error(error: Exception) -> int:
    from hermes.commands.formatting import one_line, sanitize
    from hermes.surfaces.cli.command_context import apply_style

    message, near = _describe(error)
    message = _without_secrets(message)
    try:
        print(
            f"{apply_style('error:', 'error', to=sys.stderr)} {sanitize(message)}", file=sys.stderr
        )
        for name in near:
            print(f"  {one_line(name, LONGEST_NAME)}", file=sys.stderr)
    except BrokenPipeError:
        _discard_output()
    return 2 if isinstance(error, UsageError | InvalidConfig) else 1


def _without_secrets(text: str) -> str:
    from hermes.credentials.redaction import redact_error

    return redact_error(text)


def _describe(error: Exception) -> tuple[str, tuple[str, ...]]:
    """The message of an error, and similar names."""
    match error:
        case NotFound(near=near):
            return str(error), tuple(name for name in near if name not in str(error))[
                :MOST_SUGGESTIONS
            ]
        case HermesError():
            return str(error), ()
        case OSError(filename=str() as path, strerror=str() as why):
            return f"{path} cannot be used ({why.lower()}); choose another path.", ()
        case _:
            message = f"Internal error ({type(error).__name__}: {error})"
            return f"{message}; please report it with the traceback of `hermes --verbose …`.", ()
