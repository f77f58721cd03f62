"""Stores client tokens as digests, with names and scopes, and authenticates them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from math import ceil
from typing import Literal, get_args

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.home import Home, config_lock, replace_file
from hermes.core.errors import ConfigError, NotFound, UsageError

TokenScope = Literal["chat", "approve", "sessions", "jobs", "metrics"]
"""chat      completions, responses and runs, in sessions that the client itself has opened
approve   answers to approval requests
sessions  all sessions of the home: read, continue, rename and delete them
jobs      scheduled jobs
metrics   metrics and health of the server
"""
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
TOKEN_FILE = "api_tokens.json"
LOCAL_FILE = "api_token"
LOCAL = "local"
PREFIX = "hms_"
MIN_KEY_CHARS = 16
PLACEHOLDERS = ("changeme", "change-me", "your-key", "your_key", "yourkey", "placeholder", "secret")


class ApiClient(Value):
    """The client that a token belongs to."""

    name: str
    scopes: tuple[TokenScope, ...]

    @property
    def is_owner(self) -> bool:
        return "sessions" in self.scopes

    @property
    def source(self) -> str:
        """The source of its sessions."""
        return "api" if self.is_owner else f"api:{self.name}"


# Wrong tokens of one address within a minute. Nobody who mistypes gets there.
MAX_FAILURES = 300
FAILURE_SECONDS = 60.0
_MAX_ADDRESSES = 1_000


class FailedTokens:
    """Counts wrong tokens by address. Tokens that were valid before are never held up, so that a
    stranger on the same address cannot lock the owner out."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # By address: the start of the minute and the wrong tokens in it.
        self._counts: dict[str, tuple[float, int]] = {}
        self._valid: set[str] = set()

    def wait_seconds(self, address: str, token: str) -> int:
        """The seconds until this address may try another token; 0 for now."""
        since, count = self._counts.get(address, (0.0, 0))
        if count < MAX_FAILURES or digest(token) in self._valid:
            return 0
        return max(0, ceil(since + FAILURE_SECONDS - self._now()))

    def note(self, address: str, token: str, *, is_valid: bool) -> None:
        if is_valid:
            self._valid.add(digest(token))
            return
        since, count = self._counts.pop(address, (0.0, 0))
        if not count or self._now() - since >= FAILURE_SECONDS:
            since, count = self._now(), 0
        self._counts[address] = since, count + 1
        if len(self._counts) > _MAX_ADDRESSES:
            del self._counts[next(iter(self._counts))]


class ClientToken(Value):
    name: str
    digest: str
    scopes: tuple[TokenScope, ...]
    created_at: float


class TokenFile(Value):
    tokens: tuple[ClientToken, ...] = ()


def digest(token: str) -> str:
    """Return the digest of a token. Tokens are long and random, so a plain digest cannot be
    reversed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class TokenStore:
    """The token file of a home. Changes by any process apply from the next request on."""

    def __init__(self, home: Home, *, key: str = "") -> None:
        self._home = home
        self._path = home.root / TOKEN_FILE
        self._key = digest(check_key(key)) if key else ""
        self._seen: tuple[int, int] | None = None
        self._tokens: tuple[ClientToken, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self._key or self.all())

    def all(self) -> tuple[ClientToken, ...]:
        try:
            info = self._path.stat()
        except OSError:
            self._seen, self._tokens = None, ()
            return ()
        seen = (info.st_mtime_ns, info.st_ino)
        if seen != self._seen:
            try:
                self._tokens = decode(TokenFile, self._path.read_bytes()).tokens
            except (OSError, DecodeError) as error:
                raise ConfigError(f"{self._path} cannot be read ({error}); remove it.") from error
            self._seen = seen
        return self._tokens

    def client(self, token: str) -> ApiClient | None:
        """The client of a token. Compares with every digest, in constant time."""
        token_digest, found = digest(token), None
        if self._key and hmac.compare_digest(token_digest, self._key):
            found = ApiClient(name="key", scopes=SCOPES)
        for known in self.all():
            if hmac.compare_digest(token_digest, known.digest):
                found = ApiClient(name=known.name, scopes=known.scopes)
        return found

    def add(self, name: str, scopes: tuple[TokenScope, ...], now: float) -> str:
        """Create a token; it cannot be read again."""
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise UsageError("The name of a client may contain only letters, digits, '-' and '_'.")
        token = PREFIX + secrets.token_urlsafe(32)
        with config_lock(self._home):
            known = self.all()
            if any(each.name == name for each in known):
                raise UsageError(f"A token {name!r} already exists; remove it first.")
            added = ClientToken(name=name, digest=digest(token), scopes=scopes, created_at=now)
            self._write((*known, added))
        return token

    def remove(self, name: str) -> None:
        with config_lock(self._home):
            known = self.all()
            left = tuple(each for each in known if each.name != name)
            if len(left) == len(known):
                names = tuple(each.name for each in known)
                hint = f"there are {', '.join(names)}" if names else "there is none"
                raise NotFound(f"There is no token {name!r}; {hint}.", near=names)
            self._write(left)
        if name == LOCAL:
            (self._home.root / LOCAL_FILE).unlink(missing_ok=True)

    def _write(self, tokens: tuple[ClientToken, ...]) -> None:
        replace_file(self._home, self._path, encode(TokenFile(tokens=tokens)))
        self._seen = None


def check_key(key: str) -> str:
    """Check a configured key; raise ConfigError when it is weak."""
    if len(key) < MIN_KEY_CHARS:
        raise ConfigError(f"API_SERVER_KEY needs at least {MIN_KEY_CHARS} characters.")
    bare = key.lower().strip("-_*x0123456789 ")
    if len(set(key)) < 6 or not bare or bare in PLACEHOLDERS:
        raise ConfigError(
            "API_SERVER_KEY is a placeholder; create a key with `openssl rand -hex 32`."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("API_SERVER_KEY may contain only printable ASCII characters.")
    return key


def create_local_token(home: Home, tokens: TokenStore, now: float) -> str:
    """Create a token in a private file if there is no credential yet. Returns the path of the
    file, "" when nothing was created."""
    path = home.root / LOCAL_FILE
    if tokens.any:
        return ""
    token = tokens.add(LOCAL, SCOPES, now)
    replace_file(home, path, f"{token}\n".encode())
    return str(path)


def local_token(home: Home) -> str:
    """The token in that file, "" without a file."""
    try:
        return (home.root / LOCAL_FILE).read_text().strip()
    except (OSError, UnicodeError):
        return ""
