"""The environment of image providers: keys, settings, network, and storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from hermes.codec.values import JsonObject
from hermes.core.concurrency import start_daemon_thread
from hermes.core.effects import FetchUrl
from hermes.core.errors import ToolError
from hermes.core.ports import Fetcher
from hermes.core.world import World
from hermes.images.storage import (
    MAX_BYTES,
    ImageCache,
    ImageFault,
    check_image,
    decode_base64,
    file_name,
    too_large_error,
)
from hermes.net.http import HttpClient
from hermes.providers.endpoint import is_plausible_key
from hermes.providers.keys import Credential

T = TypeVar("T")

ReadImage = Callable[[str], bytes]
Login = Callable[[str], Awaitable[Credential | None]]


class Studio:
    """The secrets, settings and files that image providers may use, for one process."""

    def __init__(
        self,
        *,
        cache: ImageCache,
        world: World,
        fetcher: Fetcher,
        read: ReadImage,  # reads a local file that may be read
        secret: Callable[[str], str] = lambda _name: "",  # returns the value of a variable
        settings: JsonObject | None = None,  # the settings under `image_gen`
        connect: Callable[[], HttpClient] = HttpClient,  # makes the HTTP client of one image
        login: Login | None = None,  # returns the credential of an account
        # returns whether there is a login, without a request
        logged_in: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        self.cache = cache
        self.world = world
        self.settings = settings or {}
        self.login = login
        self.logged_in = logged_in
        self._fetcher = fetcher
        self._read = read
        self._secret = secret
        self._connect = connect

    @property
    def wanted(self) -> str:
        """Return the provider that the settings name."""
        return str(self.settings.get("provider", "")).strip()

    def key(self, name: str) -> str:
        """Return the key in this variable; "" when there is no plausible one."""
        value = self._secret(name).strip()
        return value if is_plausible_key(value) else ""

    def variable(self, name: str) -> str:
        return self._secret(name).strip()

    def options(self, provider: str) -> JsonObject:
        own = self.settings.get(provider.replace("-", "_"))
        if isinstance(own, dict) and provider.replace("-", "_") != "options":
            return own
        others = self.settings.get("options") or {}
        return others.get(provider) or {}

    @asynccontextmanager
    async def http(self) -> AsyncIterator[HttpClient]:
        """Return connections for one image; they belong to the running event loop."""
        http = self._connect()
        try:
            yield http
        finally:
            await http.aclose()

    async def download(self, url: str, *, timeout: float, max_bytes: int) -> bytes:
        """Download an image: the policy judges the URL, and the content is checked; raise
        ImageFault."""
        try:
            answer = await self._fetcher.fetch(
                FetchUrl(url=url), max_bytes=max_bytes, timeout=timeout
            )
        except ToolError as error:
            kind = "timeout" if "did not answer within" in str(error) else "io_error"
            raise ImageFault(str(error), kind=kind) from error
        if not 200 <= answer.status < 300:
            raise ImageFault(f"The image URL returned status {answer.status}.", kind="io_error")
        return check_download(
            answer.body,
            answer.headers.get("content-type", ""),
            cut=answer.cut,
            max_bytes=max_bytes,
        )

    async def source(self, ref: str) -> tuple[bytes, str]:
        """Return the image at `ref` (http(s), data URL, or a path), and a name for it."""
        ref = ref.strip()
        if ref[:5].lower() == "data:":
            data = check_image(decode_base64(ref), kind="invalid_argument")
            return data, file_name(data)
        if ref.lower().startswith(("http://", "https://")):
            data = await self.download(ref, timeout=60, max_bytes=MAX_BYTES)
            return data, Path(unquote(urlsplit(ref).path)).name or file_name(data)
        data = await asyncio.to_thread(self._read, ref.removeprefix("file://"))
        return check_image(data, kind="invalid_argument"), Path(ref).name


def check_download(data: bytes, content_type: str, *, cut: bool, max_bytes: int) -> bytes:
    """Return the content of a response if it is an image; raise ImageFault."""
    if cut or len(data) > max_bytes:
        raise too_large_error(max_bytes)
    if not data:
        raise ImageFault("The image URL returned no data.", kind="io_error")
    sort = content_type.partition(";")[0].strip().lower()
    if not sort.startswith("image/"):
        raise ImageFault(
            f"The image URL returned {sort or 'something else'} instead of an image.",
            kind="io_error",
        )
    return check_image(data, max_bytes=max_bytes)


_studio: ContextVar[Studio | None] = ContextVar("studio_of_task", default=None)


@contextmanager
def use_studio(studio: Studio) -> Iterator[None]:
    """Make helpers use this studio within the block, and in threads and tasks that it starts."""
    token = _studio.set(studio)
    try:
        yield
    finally:
        _studio.reset(token)


def has_studio() -> bool:
    return _studio.get() is not None


def current_studio() -> Studio:
    """Return the studio of the current generation; raise ImageFault outside one."""
    studio = _studio.get()
    if studio is None:
        raise ImageFault(
            "No image is being generated: call this within `generate`, or in a test "
            "within `hermes.testing.image_provider.studio(folder)`.",
            kind="io_error",
        )
    return studio


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run async work for sync code. If an event loop runs in this thread, the work gets its own
    thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return start_daemon_thread(lambda: asyncio.run(work)).result()
