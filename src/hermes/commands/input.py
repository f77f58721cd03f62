"""Input commands (image, paste, prompt), attached images and `@` completion."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.commands.formatting import format_count
from hermes.commands.image_files import MAX_IMAGE_BYTES, check_image, image_kind
from hermes.commands.registry import (
    AttachImage,
    CommandContext,
    OpenEditor,
    Outcome,
    SlashCommand,
    Suggestion,
    suggest,
)
from hermes.config.home import Home
from hermes.context.references import complete_path
from hermes.core.errors import UsageError
from hermes.core.messages import Image


async def attach_image(home: Home, path: Path) -> Image:
    """A copy of the image in the home, as part of a message; raises UsageError when it is
    invalid."""

    def store() -> Image:
        try:
            # One byte over the limit is enough to detect a larger file.
            with path.open("rb") as file:
                data = file.read(MAX_IMAGE_BYTES + 1)
        except OSError as error:
            reason = f"{path} cannot be read ({error.strerror}); check the path."
            raise UsageError(reason) from error
        return _store(home, data, str(path))

    return await asyncio.to_thread(store)


async def store_image(home: Home, data: bytes) -> Image:
    """Store image data that is in no file, like `attach_image`."""
    return await asyncio.to_thread(_store, home, data, "The image")


def _store(home: Home, data: bytes, name: str) -> Image:
    if len(data) > MAX_IMAGE_BYTES:
        raise UsageError(
            f"{name} exceeds {MAX_IMAGE_BYTES // 1024 // 1024} MB; use a smaller image."
        )
    media_type, ending = image_kind(name, data)
    folder = home.ensure_folder(home.cache / "images")
    copy = folder / f"{hashlib.sha256(data).hexdigest()}{ending}"
    if not copy.exists():
        replace_file(copy, data)
    return Image(file=str(copy), media_type=media_type)


REFERENCE_KINDS = {
    "file:": "a file, or lines of it: @file:path:10-25",
    "folder:": "a list of the files in a folder",
    "diff": "the output of `git diff`",
    "staged": "the output of `git diff --staged`",
    "git:": "the last commits: @git:3",
    "url:": "a web page",
}
_UNFINISHED = re.compile(r"(?:^|(?<=[\s(\[{]))@(?P<kind>file:|folder:)?(?P<rest>[^\s@]*)$")


async def references_like(here: CommandContext, line: str) -> Sequence[Suggestion]:
    match = _UNFINISHED.search(line)
    if match is None:
        return ()
    kind, rest = match["kind"] or "", match["rest"]
    suggestions = [] if kind else suggest(REFERENCE_KINDS, rest)
    if suggestions:
        return suggestions
    folder = rest.rpartition("/")[0]
    for info in await complete_path(here.session, rest):
        if kind == "folder:" and info.kind != "folder":
            continue
        name = posixpath.join(folder, posixpath.basename(info.path))
        is_folder = info.kind == "folder"
        shown = name + "/" if is_folder else name
        suggestions.append(
            Suggestion(
                text=shown if kind else f"file:{shown}",
                description="" if is_folder else f"{format_count(info.size)} bytes",
                replaces=len(rest),
            )
        )
    return suggestions


PASTE_SECONDS = 5.0
# Clipboard programs in order of preference.
CLIPBOARDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)


async def image(here: CommandContext, argument: str) -> Outcome | None:
    if not argument:
        return None

    def find() -> AttachImage:
        path = Path(here.session.workspace.root) / Path(argument.strip("\"'")).expanduser()
        return AttachImage(path=str(path), text=f"{check_image(path)} goes with your next message.")

    return await asyncio.to_thread(find)


async def paste(here: CommandContext, argument: str) -> Outcome:
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
            return AttachImage(path=(await store_image(here.app.context.home, data)).file)
    raise UsageError("There is no image in the clipboard; attach a file with /image PATH.")


async def prompt(here: CommandContext, argument: str) -> Outcome:
    return OpenEditor(draft=argument)


INPUT_COMMANDS = (
    SlashCommand("image PATH", "Attach an image to your next message.", image, surfaces=("cli",)),
    SlashCommand("paste", "Attach the image in the clipboard.", paste, surfaces=("cli",)),
    SlashCommand(
        "prompt [TEXT]", "Write your message in your text editor.", prompt, surfaces=("cli",)
    ),
)
