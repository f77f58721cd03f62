"""Input commands: image, paste, prompt."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from hermes.commands.pictures import store_image
from hermes.commands.registry import AttachImage, CommandContext, OpenEditor, Outcome, SlashCommand
from hermes.core.errors import UsageError

PASTE_SECONDS = 5.0
# Clipboard programs in order of preference.
CLIPBOARDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)


async def image(here: CommandContext, argument: str) -> Outcome:
    if not argument:
        raise UsageError("Use /image PATH to attach an image to your next message.")
    return AttachImage(
        path=await asyncio.to_thread(_resolve_path, argument, here.session.workspace.root)
    )


async def paste(here: CommandContext, argument: str) -> Outcome:
    kept = await store_image(here.app, await _clipboard())
    return AttachImage(path=kept.file)


async def prompt(here: CommandContext, argument: str) -> Outcome:
    return OpenEditor(draft=argument)


def _resolve_path(typed: str, root: str) -> str:
    path = Path(root) / Path(typed.strip("\"'")).expanduser()
    if not path.is_file():
        raise UsageError(f"There is no file {path}; give a relative or absolute path.")
    return str(path)


async def _clipboard() -> bytes:
    """The image in the clipboard; UsageError without one."""
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
    raise UsageError("There is no image in the clipboard; attach a file with /image PATH.")


INPUT_COMMANDS = (
    SlashCommand(
        "image",
        "Attach an image to the next message.",
        image,
        arguments="path",
        category="input",
        surfaces=("cli",),
    ),
    SlashCommand(
        "paste", "Attach an image from the clipboard.", paste, category="input", surfaces=("cli",)
    ),
    SlashCommand(
        "prompt", "Write the message in your editor.", prompt, category="input", surfaces=("cli",)
    ),
)
