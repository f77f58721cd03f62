"""Files in messages: those that an answer names with MEDIA tags, and those that people send."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes.codec.values import Value, replace
from hermes.commands.input import attach_image
from hermes.config.home import Home
from hermes.core.effects import Allow, Ask, Decision
from hermes.core.errors import UsageError
from hermes.core.messages import Image
from hermes.surfaces.gateway.chunks import FENCE
from hermes.surfaces.gateway.platform import AttachmentKind, InboundFile, OutboundFile

KINDS: dict[AttachmentKind, str] = {
    "image": "png jpg jpeg gif webp bmp tiff svg",
    "audio": "mp3 wav ogg m4a opus flac aac",
    "video": "mp4 mov webm mkv avi",
    "file": "pdf txt md csv json xml html yaml yml log docx xlsx pptx odt ods odp zip rar 7z tar "
    "gz bz2 epub",
}
EXTENSIONS: dict[str, AttachmentKind] = {
    extension: kind for kind, names in KINDS.items() for extension in names.split()
}
AS_VOICE, AS_DOCUMENT = "[[audio_as_voice]]", "[[as_document]]"
_TAG = re.compile(r"""MEDIA:\s*(?:"([^"\n]+)"|'([^'\n]+)'|`([^`\n]+)`|(\S+))""")
_BARE_PATH = re.compile(r"[ \t]*`?(/[^\s`][^\n`]*\.([A-Za-z0-9]{1,5}))`?[ \t]*")
_CODE_SPAN = re.compile(r"(`+)[^`\n]+\1")

MayAttach = Callable[[str], Decision]


class ReplyMedia(Value):
    """A text without its tags, the files that it names, and one line for each file that cannot be
    sent."""

    text: str
    files: tuple[OutboundFile, ...] = ()
    notes: tuple[str, ...] = ()


class MediaRules:
    """Decides which local files may be sent. `may_attach` is the policy of the session; files below
    `roots` may be sent although they are outside of the workspace. `only` is the folder of somebody
    who is not the owner: nothing else may be sent to them."""

    def __init__(
        self,
        may_attach: MayAttach,
        roots: Sequence[str],
        max_bytes: int = 0,
        only: Path | None = None,
    ) -> None:
        self._may_attach = may_attach
        self._only = only.resolve() if only else None
        self._roots = [Path(root).expanduser().resolve() for root in roots]
        self._max_bytes = max_bytes

    def problem(self, path: Path) -> str:
        """Why the file cannot be sent; "" when it can."""
        try:
            real = path.resolve(strict=True)
            size = real.stat().st_size
        except (OSError, ValueError, RuntimeError):
            return "it does not exist"
        if not real.is_file():
            return "it is not a regular file"
        if self._only is not None and not real.is_relative_to(self._only):
            return "it is not in a folder that may be sent"
        decision = self._may_attach(str(real))
        is_rooted = any(real.is_relative_to(root) for root in self._roots)
        if not isinstance(decision, Allow) and not (isinstance(decision, Ask) and is_rooted):
            return "it is not in a folder that may be sent"
        if self._max_bytes and size > self._max_bytes:
            return "it is too large for this platform"
        return ""


def strip_tags(text: str) -> str:
    """The text without tags, for the display while it is generated. A tag that has only begun is
    held back."""
    shown = "\n".join(line for line in text.split("\n") if not _is_tag_line(line))
    tail = re.search(r"(?:\bM(?:E(?:D(?:I(?:A(?::\S*)?)?)?)?)?|\[\[[a-z_]*\]?)$", shown)
    return shown[: tail.start()] if tail else shown


def _is_tag_line(line: str) -> bool:
    return bool(_TAG.fullmatch(line.strip())) or line.strip() in (AS_VOICE, AS_DOCUMENT)


def extract_media(text: str, rules: MediaRules) -> ReplyMedia:
    """The files of a reply. Tags in code and block quotes are text."""
    as_voice, as_document = AS_VOICE in text, AS_DOCUMENT in text
    lines: list[str] = []
    files: list[OutboundFile] = []
    notes: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence and not line.lstrip().startswith(">"):
            kept = _take_files(line, rules, files, notes, as_voice, as_document)
            if not kept.strip() and line.strip():
                continue
            line = kept
        lines.append(line)
    clean = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return ReplyMedia(text=clean, files=tuple(files), notes=tuple(notes))


def _take_files(
    line: str,
    rules: MediaRules,
    files: list[OutboundFile],
    notes: list[str],
    as_voice: bool,
    as_document: bool,
) -> str:
    """The line without the tags whose files are sent. A refused tag stays."""
    line = line.replace(AS_VOICE, "").replace(AS_DOCUMENT, "")
    spans = [found.span() for found in _CODE_SPAN.finditer(line)]

    def take(found: re.Match[str]) -> str:
        if any(start <= found.start() < end for start, end in spans):
            return found[0]
        named = next(each for each in found.groups() if each)
        path = Path(named.rstrip(".,;:!?)") if found[4] else named).expanduser()
        if problem := rules.problem(path):
            notes.append(f"The file {path.name} was not sent: {problem}.")
            return found[0]
        files.append(outbound_file(path, as_voice=as_voice, as_document=as_document))
        return ""

    bare = _BARE_PATH.fullmatch(line)
    if bare and bare[2].lower() in EXTENSIONS:
        path = Path(bare[1])
        if not rules.problem(path):
            files.append(outbound_file(path, as_voice=as_voice, as_document=as_document))
            return ""
    return _TAG.sub(take, line)


def outbound_file(path: Path, *, as_voice: bool = False, as_document: bool = False) -> OutboundFile:
    kind = EXTENSIONS.get(path.suffix.lower().removeprefix("."), "file")
    is_voice = as_voice and kind == "audio"
    return OutboundFile(
        kind="voice" if is_voice else kind,
        path=str(path),
        name=path.name,
        as_voice=is_voice,
        as_document=as_document,
    )


def move_file(file: InboundFile, folder: Path) -> InboundFile:
    """Move the file of a sender into their own folder."""
    path = Path(file.path)
    if not file.path or not path.is_file():
        return file
    try:
        return replace(file, path=shutil.move(path, folder / path.name))
    except OSError as error:
        return replace(file, path="", problem=f"it could not be stored: {error.strerror}")


async def describe_files(
    home: Home, files: Sequence[InboundFile]
) -> tuple[tuple[str, ...], tuple[Image, ...]]:
    """What the model learns about the files of a message: images to see, lines about the rest."""
    lines: list[str] = []
    images: list[Image] = []
    for file in files:
        name = " ".join((file.name or file.kind).split())[:200]
        if file.problem:
            lines.append(f"[The sender attached {name!r}, which is not available: {file.problem}]")
            continue
        if file.kind in ("image", "sticker"):
            try:
                images.append(await attach_image(home, Path(file.path)))
            except UsageError:
                pass
            else:
                continue
        lines.append(f"[The sender attached a {file.kind}: {name!r}, stored at {file.path}]")
    return tuple(lines), tuple(images)
