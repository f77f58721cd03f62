"""Commands about what is typed: image, paste, prompt."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from hermes.commands.pictures import keep
from hermes.commands.registry import Attached, Composing, Here, Outcome, SlashCommand
from hermes.core.errors import UsageError

PASTE_SECONDS = 5.0
# Programs that know the clipboard of a desktop, first the one that is there by itself.
CLIPBOARDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)


async def image(here: Here, argument: str) -> Outcome:
    if not argument:
        raise UsageError("Use /image PATH: the picture goes with your next message.")
    return Attached(path=await asyncio.to_thread(_found, argument, here.session.workspace.root))


async def paste(here: Here, argument: str) -> Outcome:
    kept = await keep(here.app, await _clipboard())
    return Attached(path=kept.file)


async def prompt(here: Here, argument: str) -> Outcome:
    return Composing(draft=argument)


def _found(typed: str, root: str) -> str:
    path = Path(root) / Path(typed.strip("\"'")).expanduser()
    if not path.is_file():
        raise UsageError(f"There is no file {path}; name one from here or with its whole path.")
    return str(path)


async def _clipboard() -> bytes:
    """The picture in the clipboard of the desktop; UsageError when there is none."""
    for program, *arguments in CLIPBOARDS:
        if shutil.which(program) is None:
            continue
        running = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(PASTE_SECONDS):
                data, _ = await running.communicate()
        except TimeoutError:
            running.kill()
            await running.wait()
            continue
        if data:
            return data
    raise UsageError("There is no picture in the clipboard; /image PATH takes one from a file.")


COMMANDS = (
    SlashCommand(
        "image",
        "Send a picture with the next message.",
        image,
        arguments="path",
        category="input",
        surfaces=("cli",),
    ),
    SlashCommand(
        "paste", "The same from the clipboard.", paste, category="input", surfaces=("cli",)
    ),
    SlashCommand(
        "prompt", "Write in your own editor.", prompt, category="input", surfaces=("cli",)
    ),
)
