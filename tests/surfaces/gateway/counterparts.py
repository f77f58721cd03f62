"""Platforms at the other end of a real gateway process: what people write and what they get."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from hermes.testing.platforms.telegram import TOKEN, FakeTelegram
from tests.surfaces.gateway import mail_servers as mail
from tests.surfaces.gateway import matrix_server as matrix
from tests.surfaces.gateway.link import Link

FIRST_PERSON = 11


class Counterpart(ABC):
    """A platform with some chats. `links` are the lines that the gateway uses."""

    links: tuple[Link, ...] = ()
    # Whether the outcome of an interrupted post can be found out.
    can_resolve = True

    @abstractmethod
    def env(self) -> dict[str, str]:
        """The settings of the platform."""

    def settings(self) -> str:
        """Lines for config.yaml."""
        return ""

    @abstractmethod
    async def say(self, chat: int, text: str, *, twice: bool = False) -> None:
        """A person writes; with `twice`, the platform delivers it twice if it can."""

    @abstractmethod
    async def shown(self, chat: int) -> Sequence[str]:
        """What the person sees of the bot in a chat, oldest first."""

    def position_files(self, _home: Path) -> Sequence[Path]:
        """Where the adapter stores how far it has read. An old copy makes events come again."""
        return ()


class TelegramChats(Counterpart):
    """The fake Bot API."""

    def __init__(self, server: FakeTelegram, link: Link, count: int) -> None:
        self._server = server
        self._people = [server.chats.add_person(FIRST_PERSON + n) for n in range(count)]
        self.links = (link,)
        # Bots cannot read chats, so a person is told that a reply may be missing.
        self.can_resolve = False

    def env(self) -> dict[str, str]:
        ids = ",".join(str(FIRST_PERSON + n) for n in range(len(self._people)))
        return {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_ALLOWED_USERS": ids}

    def settings(self) -> str:
        base = f"http://127.0.0.1:{self.links[0].port}/bot"
        return (
            f'platforms: {{telegram: {{extra: {{base_url: "{base}", '
            "drop_pending_on_cold_boot: false}}}\n"
        )

    async def say(self, chat: int, text: str, *, twice: bool = False) -> None:
        self._server.repeats_updates = self._server.reverses_updates = twice
        self._server.chats.say(self._people[chat], text)

    async def shown(self, chat: int) -> Sequence[str]:
        return self._server.chats.texts(FIRST_PERSON + chat)


class MatrixRooms(Counterpart):
    """Rooms on a real Synapse."""

    def __init__(self, rooms: Sequence[matrix.MatrixRoom], link: Link) -> None:
        self._rooms = rooms
        self.links = (link,)

    def env(self) -> dict[str, str]:
        return {
            "MATRIX_HOMESERVER": f"http://127.0.0.1:{self.links[0].port}",
            "MATRIX_USER_ID": matrix.BOT,
            "MATRIX_PASSWORD": "bot-pw",
            "MATRIX_ALLOWED_USERS": matrix.ADA,
        }

    async def say(self, chat: int, text: str, *, twice: bool = False) -> None:
        await self._rooms[chat].say(text)

    async def shown(self, chat: int) -> Sequence[str]:
        return await self._rooms[chat].shown()

    def position_files(self, home: Path) -> Sequence[Path]:
        return [home / "platforms" / "matrix" / "sync.json"]


class MailThreads(Counterpart):
    """Threads in a mailbox on real mail servers."""

    def __init__(self, servers: mail.MailServers, imap: Link, smtp: Link) -> None:
        self._servers = servers
        self.links = (imap, smtp)

    def env(self) -> dict[str, str]:
        return {
            "EMAIL_ADDRESS": mail.BOT,
            "EMAIL_PASSWORD": mail.PASSWORD,
            "EMAIL_IMAP_HOST": "127.0.0.1",
            "EMAIL_IMAP_PORT": str(self.links[0].port),
            "EMAIL_SMTP_HOST": "127.0.0.1",
            "EMAIL_SMTP_PORT": str(self.links[1].port),
            "EMAIL_ALLOWED_USERS": mail.ADA,
        }

    def settings(self) -> str:
        path = self._servers.root / "cert.pem"
        return f'platforms: {{email: {{extra: {{ca_file: "{path}"}}}}}}\n'

    async def say(self, chat: int, text: str, *, twice: bool = False) -> None:
        headers = {"References": f"<root{chat}@home.test>"}
        written = self._servers.write(text, headers=headers)
        if twice:
            # The copy of a mail server that did not hear our answer.
            self._servers.put(mail.BOT, written.as_bytes())

    async def shown(self, chat: int) -> Sequence[str]:
        root = f"<root{chat}@home.test>"
        mails = [each for each in self._servers.mails() if root in str(each["References"])]
        bodies = (each.get_body(("plain",)) for each in mails)
        return [body.get_content().strip() for body in bodies if body]

    def position_files(self, home: Path) -> Sequence[Path]:
        return sorted((home / "platforms" / "email").glob("email_cursor_*.json"))


@asynccontextmanager
async def telegram_chats(count: int) -> AsyncIterator[Counterpart]:
    async with FakeTelegram.start() as server:
        port = int(server.url.rpartition(":")[2])
        async with Link(port).listening() as link:
            yield TelegramChats(server, link, count)


@asynccontextmanager
async def matrix_rooms(url: str, folder: Path, count: int) -> AsyncIterator[Counterpart]:
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(Link(int(url.rpartition(":")[2])).listening())
        rooms = []
        for n in range(count):
            (folder / f"ada{n}").mkdir(parents=True)
            room = matrix.matrix_room(url, folder / f"ada{n}", encrypted=False)
            rooms.append(await stack.enter_async_context(room))
        yield MatrixRooms(rooms, link)


@asynccontextmanager
async def mail_threads(folder: Path) -> AsyncIterator[Counterpart]:
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(mail.mail_servers(folder))
        imap = await stack.enter_async_context(Link(servers.imap_port).listening())
        smtp = await stack.enter_async_context(Link(servers.smtp_port).listening())
        yield MailThreads(servers, imap, smtp)
