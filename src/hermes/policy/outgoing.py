"""Tells which words name another machine, and which data an address carries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hermes.codec.json import DecodeError, decode
from hermes.core.ports import ConversationText
from hermes.policy.patterns import load_regex, regex
from hermes.policy.payloads import LEAST, QUOTED_IN_TEXT, find_new_value, find_opaque, find_read
from hermes.policy.programs.records import flagged

HOST = regex(
    r"^[a-z][a-z0-9+.-]*://|^[\w.-]+@[\w.-]+(:|$)|^\d{1,3}(\.\d{1,3}){3}(:\d+|/\d+|$)"
    r"|^[\w-]+(\.[\w-]+)+:\d+(/|$)|^//|^\\\\"
)
NEAR = regex(
    r"^(?:unix|npipe|fd|file)://|^(?:[a-z+]+://)?(?:[^/@]*@)?(?:localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0)(?=[:/?#]|$)"
)


def is_remote(word: str) -> bool:
    """Whether a word names another machine."""
    return bool(HOST.search(word)) and not NEAR.match(word)


SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
LONGEST = 200_000
_URL = regex(r"\bhttps?://[^\s'\"<>|;)\\]+", re.IGNORECASE)
_HOST = regex(r"^https?://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)", re.IGNORECASE)
_GIT_CONTACTS = regex(
    r"(?:-\S+ (?:\S+ )?)*(?:clone|fetch|pull|push|ls-remote|remote|submodule|archive|bundle)\b"
)
# A host with or without more behind it, unless it is the value of an option such as `-o`.
_BARE = regex(
    r"(?<! -[oOHAbcdeuXmwxTFKPUDzCrtyY])(?<!--output)(?<!--header)( )('?)"
    r"((?:localhost|[\w-]+(?:\.[\w-]+)+|\d+(?:\.\d+){3})(?::\d+)?(?:[/?][^\s']*)?'?)(?= |$)"
)
_LOCAL = regex(r"localhost|127(?:\.\d+){3}|\[::1\]|[\w-]+\.localhost", re.IGNORECASE)
_PLAIN_FETCH = load_regex("plain_fetch")


def with_scheme(command: str) -> str:
    """Return the command with `http://` before addresses without a scheme, as fetchers add it."""
    if command.partition(" ")[0] not in flagged("fetches"):
        return command
    return _BARE.sub(r"\1\2http://\3", command)


def urls_in(text: str) -> list[str]:
    return [found.rstrip(".,") for found in _URL.findall(text[:LONGEST])]


def contacted_urls(command: str) -> list[str]:
    """Return the addresses that a command contacts. Many programs only mention addresses."""
    urls = [url for url in urls_in(with_scheme(command)) if not is_local(host_of(url))]
    program, _, rest = command.partition(" ")
    if not urls or program in flagged("opens_no_address"):
        return []
    if program == "git" and not _GIT_CONTACTS.match(rest):
        return []
    return urls


def host_of(url: str) -> str:
    found = _HOST.match(url)
    return found[1].lower() if found else ""


def is_local(host: str) -> bool:
    return _LOCAL.fullmatch(host) is not None


def is_named(host: str, seen: ConversationText | None, hosts: Iterable[str] = ()) -> bool:
    """Whether the person or the settings named this host or one of its parent domains."""
    labels = host.split(".")
    names = [".".join(labels[at:]) for at in range(max(1, len(labels) - 1))]
    listed = {each.lower().removeprefix("*.") for each in hosts}
    return any(name in listed or (seen is not None and seen.user_wrote(name)) for name in names)


def is_known(url: str, seen: ConversationText | None, hosts: Iterable[str] = ()) -> bool:
    """Whether the whole address appeared before, or its host was named by the person: such an
    address carries nothing new."""
    bare = url.partition("#")[0]
    wholes = {url, bare, bare.rstrip("/")}
    return (seen is not None and any(seen.occurs(each) for each in wholes)) or is_named(
        host_of(url), seen, hosts
    )


def is_plain_fetch(command: str, seen: ConversationText | None, hosts: Iterable[str] = ()) -> bool:
    """Whether a command fetches known addresses and sends nothing else."""
    command = with_scheme(command)
    urls = urls_in(command)
    bare = _URL.sub("URL", command.replace("'", ""))
    known = all(is_local(host_of(url)) or is_known(url, seen, hosts) for url in urls)
    return bool(urls) and known and _PLAIN_FETCH.fullmatch(bare) is not None


def is_closed(arguments: str, seen: ConversationText | None, origin: str) -> bool:
    """Whether the arguments for a server hold only the person's own words, what that server sent
    itself, numbers and single plain words."""
    try:
        leaves = tuple(_leaves(decode(object, arguments.encode())))
    except DecodeError:
        return False
    if seen is None:
        return not leaves
    return all(
        seen.user_wrote(leaf)
        or seen.in_results(leaf, origin)
        or (len(leaf) <= LEAST and leaf.isalpha() and not seen.in_results(leaf))
        for leaf in leaves
    )


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each)
            if len(key) > 2 * LEAST:
                yield key
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str) and value:
        yield value


def find_carried(url: str, seen: ConversationText | None) -> str:
    """Return the first piece of the address that was read in this conversation and not written by
    the person, plain or encoded; "" for none."""
    if seen is None or is_local(host_of(url)) or seen.occurs(url):
        return ""
    return find_read(url.partition("://")[2], seen)


def find_carried_by(command: str, seen: ConversationText | None) -> str:
    """Find such a piece in a command that contacts a host: an option may carry it, too."""
    plain, urls = command, contacted_urls(command)
    resolves = command.partition(" ")[0] in flagged("looks_up")
    if seen is None or not (urls or resolves) or seen.occurs(plain):
        return ""
    command = with_scheme(command)
    for url in urls:
        if seen.occurs(url):
            command = command.replace(url, "")
    return find_read(command.replace(".", " ") if resolves else command, seen)


def find_steered(url: str, seen: ConversationText | None, hosts: Iterable[str] = ()) -> str:
    """Return what an address seems to carry because text in files says so: an opaque value, or a
    new value for a host that only that text names; "" for nothing."""
    host = host_of(url)
    if seen is None or is_local(host) or is_known(url, seen, hosts):
        return ""
    if opaque := find_opaque(url.partition("://")[2], seen):
        return opaque
    return find_new_value(url.partition("?")[2], seen) if seen.in_results(host) else ""


def find_steered_name(command: str, seen: ConversationText | None) -> str:
    """Return the opaque label of a name that a command looks up."""
    if seen is None or command.partition(" ")[0] not in flagged("looks_up"):
        return ""
    return find_opaque(command.partition(" ")[2], seen)


def find_disclosed(arguments: str, seen: ConversationText | None) -> str:
    """Return text in the arguments for a server that was read in this conversation."""
    if seen is None:
        return ""
    try:
        leaves = tuple(_leaves(decode(object, arguments.encode())))
    except DecodeError:
        leaves = (arguments,)
    found = (find_read(leaf, seen, QUOTED_IN_TEXT) for leaf in leaves)
    return next(filter(None, found), "")
