"""One run of the command line, from arguments to exit code, with every error in one sentence."""

from __future__ import annotations

import os
import sys

from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.surfaces.cli.options import quick_oneshot


def run(arguments: list[str]) -> int:
    """Exit codes: 0 well, 1 failed, 2 wrong usage, 130 interrupted. A closed pipe ends quietly."""
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has left; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except UsageError as error:
        return _complain(str(error), code=2)
    except HermesError as error:
        if "-v" in arguments or "--verbose" in arguments:
            raise
        near = error.near if isinstance(error, NotFound) else ()
        return _complain(str(error), *near, code=1)


def _dispatch(arguments: list[str]) -> int:
    options = quick_oneshot(arguments)
    if options is not None:
        from hermes.surfaces.cli.oneshot import run_oneshot

        return run_oneshot(options)
    from hermes.surfaces.cli.root import invoke

    return invoke(arguments)


def _complain(message: str, *near: str, code: int) -> int:
    from hermes.surfaces.cli.style import styled

    print(f"{styled('error:', 'error', to=sys.stderr)} {message}", file=sys.stderr)
    for name in near[:3]:
        print(f"  {name}", file=sys.stderr)
    return code
