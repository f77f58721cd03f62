"""The credentials of clients: named, scoped, kept as digests, and found by what a client sends."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Literal, get_args

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.files import replace_file, sole_writer
from hermes.config.home import Home
from hermes.core.errors import ConfigError, NotFound, UsageError

Scope = Literal["chat", "approve", "sessions", "jobs", "metrics"]
"""chat      conversations, responses and runs, in sessions that the client itself has opened
approve   the word of a person, where the agent must ask for one
sessions  all sessions of the home, to read, to go on with, to rename and to delete
jobs      scheduled jobs
metrics   numbers and states of the server
"""
SCOPES: tuple[Scope, ...] = get_args(Scope)
FILE = "api_tokens.json"
LOCAL_FILE = "api_token"
LOCAL = "local"
PREFIX = "hms_"
SHORTEST_KEY = 16
PLACEHOLDERS = ("changeme", "change-me", "your-key", "your_key", "yourkey", "placeholder", "secret")


class Client(Value):
    """Whoever sent a request, as its token says."""

    name: str
    scopes: tuple[Scope, ...]

    @property
    def is_owner(self) -> bool:
        return "sessions" in self.scopes

    @property
    def source(self) -> str:
        """What its sessions are kept under."""
        return "api" if self.is_owner else f"api:{self.name}"


class Token(Value):
    name: str
    digest: str
    scopes: tuple[Scope, ...]
    created_at: float


class Kept(Value):
    tokens: tuple[Token, ...] = ()


def digest(token: str) -> str:
    """Tokens are long and random, so a plain digest cannot be turned back."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class Tokens:
    """The file of a home. A change of it counts from the next request on, also if another process
    made it."""

    def __init__(self, home: Home, *, key: str = "") -> None:
        self._home = home
        self._path = home.root / FILE
        self._key = digest(check_key(key)) if key else ""
        self._seen: tuple[int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self._key or self.all())

    def all(self) -> tuple[Token, ...]:
        try:
            info = self._path.stat()
        except OSError:
            self._seen, self._tokens = None, ()
            return ()
        seen = (info.st_mtime_ns, info.st_ino)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        return self._tokens

    def client(self, token: str) -> Client | None:
        """Whose token it is. Every known one is compared, so that time tells nothing."""
        given, found = digest(token), None
        if self._key and hmac.compare_digest(given, self._key):
            found = Client(name="key", scopes=SCOPES)
        for known in self.all():
            if hmac.compare_digest(given, known.digest):
                found = Client(name=known.name, scopes=known.scopes)
        return found

    def add(self, name: str, scopes: tuple[Scope, ...], now: float) -> str:
        """The new token, which is nowhere to be read again."""
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise UsageError("A client's name has letters, digits, '-' and '_' only.")
        token = PREFIX + secrets.token_urlsafe(32)
        with sole_writer(self._home):
            known = self.all()
            if any(each.name == name for each in known):
                raise UsageError(f"There is a token {name!r} already; remove it first.")
            added = Token(name=name, digest=digest(token), scopes=scopes, created_at=now)
            self._write((*known, added))
        return token

    def remove(self, name: str) -> None:
        with sole_writer(self._home):
            known = self.all()
            left = tuple(each for each in known if each.name != name)
            if len(left) == len(known):
                names = tuple(each.name for each in known)
                hint = f"there are {', '.join(names)}" if names else "there is none"
                raise NotFound(f"There is no token {name!r}; {hint}.", near=names)
            self._write(left)
        if name == LOCAL:
            (self._home.root / LOCAL_FILE).unlink(missing_ok=True)

    def _read(self) -> tuple[Token, ...]:
        try:
            return decode(Kept, self._path.read_bytes()).tokens
        except (OSError, DecodeError) as error:
            raise ConfigError(f"{self._path} cannot be read ({error}); remove it.") from error

    def _write(self, tokens: tuple[Token, ...]) -> None:
        replace_file(self._home, self._path, encode(Kept(tokens=tokens)))
        self._seen = None


def check_key(key: str) -> str:
    """A key that somebody thought up; ConfigError for one that others think up too."""
    if len(key) < SHORTEST_KEY:
        raise ConfigError(f"API_SERVER_KEY needs at least {SHORTEST_KEY} characters.")
    bare = key.lower().strip("-_*x0123456789 ")
    if len(set(key)) < 6 or not bare or any(bare == word for word in PLACEHOLDERS):
        raise ConfigError("API_SERVER_KEY is a placeholder; `openssl rand -hex 32` makes a key.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("API_SERVER_KEY may hold visible ASCII characters only.")
    return key


def ensure_local(home: Home, tokens: Tokens, now: float) -> str:
    """No listener without a credential: where there is none, one is made and kept in a file that
    only its owner can read. The path of that file, "" when nothing had to be made."""
    path = home.root / LOCAL_FILE
    if tokens.any:
        return ""
    token = tokens.add(LOCAL, SCOPES, now)
    replace_file(home, path, f"{token}\n".encode())
    return str(path)


def local_token(home: Home) -> str:
    """What is in that file, "" where there is none."""
    try:
        return (home.root / LOCAL_FILE).read_text().strip()
    except (OSError, UnicodeError):
        return ""
