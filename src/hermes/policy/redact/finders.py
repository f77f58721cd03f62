"""Runs all finders of secrets: key blocks, URLs, headers, fields, formats and people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hermes.policy.patterns import regex
from hermes.policy.redact.fields import BY_HEART, find_by_field_name, find_in_columns
from hermes.policy.redact.formats import find_by_format
from hermes.policy.redact.heuristics import (
    TABLES,
    NameWeight,
    Search,
    compiled,
    is_chosen,
    is_code,
    is_jumbled,
    is_not_secret,
    looks_random,
    name_weight,
)
from hermes.policy.redact.spans import SearchText, SecretSpan, span_of

_PHONE = regex(r"\+[1-9]\d{9,14}(?!\w)")
_NOT_BEFORE_PHONE = regex(r"[\w+.=&-]")
_SPACED_PHONE = regex(r"(?<![\w+.])\+[1-9]\d{0,2}(?:[ .()-]{1,2}\d{2,4}){2,5}(?!\w)")
_MAIL = regex(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,63}){1,4}")
_ID = regex(
    r"(?i)(?<![\w])(?:user|chat|sender|member|account|customer|peer|from)[_ -]?id[\"']?\s*[:=]\s*"
    r"[\"']?(?P<id>[\w@.:+-]{4,64})"
)


def find_numbers(text: str) -> Iterator[SecretSpan]:
    """Find phone numbers, which are always masked."""
    for match in _PHONE.finditer(text):
        if not _NOT_BEFORE_PHONE.match(text, match.start() - 1) or not match.start():
            yield span_of(match, "phone", 0)


def find_people(text: str) -> Iterator[SecretSpan]:
    """Find phone numbers in any spelling, mail addresses and user ids, if `pii` is on."""
    for expression, kind in ((_PHONE, "phone"), (_SPACED_PHONE, "phone"), (_MAIL, "email")):
        for match in expression.finditer(text):
            yield span_of(match, f"pii_{kind}", 0)
    for match in _ID.finditer(text):
        yield SecretSpan(start=match.start("id"), end=match.end("id"), kind="pii_id")


_BLOCK = regex(
    r"-----BEGIN (?P<what>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
    r"(?P<body>.{0,32768}?-----END (?P=what)-----|(?:\\[nr]|[A-Za-z0-9+/=\s:,-])*)",
    re.S,
)
_JWT = regex(r"(?<![\w-])eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){2,4}")
_USER_INFO = regex(
    r"://(?P<user>[^\s/@:\"'<>`\\]{0,256})(?::(?P<word>[^\s@\"'<>`]{0,256}))?@(?=[\w\[$%{.])"
)
# The user of a mail server is a mail address.
_MAIL_USER = regex(
    r"://(?P<user>[^\s/@:\"'<>`\\]{1,128}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5})"
    r":(?P<word>[^\s@/\"'<>`]{4,256})@(?=[\w\[$%{.])"
)
# A URL used as a path has lost a slash.
_FOLDED = regex(
    r":/(?P<user>[^\s/@:\"'<>`\\]{1,256}):(?P<word>[^\s@/\"'<>`]{4,256})@(?=[\w\[$%{.])"
)
_URL = regex(r"[^\s\"'<>`]{4,4096}")
_PARAMETER = regex(r"[?&](?:amp;)?(?P<name>[\w.\[\]-]{1,40})=(?P<secret>[^\s&#\"'<>`;)]{4,})")
_COOKIES = regex(
    r"(?i)cookies?(?:[\"']?\s*(?:[:=]|,\s*[\"']value[\"']\s*:)\s*|[ \t]+(?=[\"']?[\w.%-]+=))"
    r"[\"']?(?P<all>[^\n\"']{3,4096})"
)
# As curl is given them.
_SENT_COOKIES = regex(r" -b[ =]?[\"']?(?P<all>[\w.%-]{1,64}=[^\n\"']{6,4096})")
# The secret part of an unknown webhook URL.
_HOOK = regex(
    r"/(?:incoming-?)?(?:web)?hooks?/(?:[\w-]{1,40}/){0,3}?(?P<secret>[A-Za-z0-9_-]{20,})(?![\w/-])"
)
_COOKIE = regex(r"(?P<name>[\w.%-]+)=(?P<secret>[^;,\s\"']{6,})")
_WEBHOOK = regex(TABLES.expressions["webhook"])
_LISTS = TABLES.lists


def find_keys(page: SearchText) -> Iterator[SecretSpan]:
    """Find private keys, and signed tokens."""
    if "PRIVATE KEY" in page.text:
        for match in _BLOCK.finditer(page.text):
            # A block without a body is only mentioned.
            if len(match["body"].strip()) > len(match["what"]) + 30:
                yield span_of(match, "private_key", 0)
    for at in page.places(b"eyJ", exact=True):
        if (token := _JWT.match(page.text, at)) and len(token[0]) >= 24:
            yield span_of(token, "jwt", 0)


def find_in_urls(page: SearchText) -> Iterator[SecretSpan]:
    """Find passwords and tokens in URLs: before the host, in the query, in the path of a
    webhook."""
    done = 0
    for at in page.places(b":/"):
        if match := _FOLDED.match(page.text, at):
            yield from _user_info(match)
    for at in page.places(b"://"):
        if match := _MAIL_USER.match(page.text, at) or _USER_INFO.match(page.text, at):
            yield from _user_info(match)
        if at < done or not (url := _URL.match(page.text, at)):
            continue
        done = url.end()
        for match in _PARAMETER.finditer(page.text, at, done):
            if _is_parameter(match["name"], match["secret"]):
                yield span_of(match, "url_parameter")
        yield from _webhook(page.text, at, done)


def _webhook(text: str, at: int, end: int) -> Iterator[SecretSpan]:
    match = _WEBHOOK.search(text, at, end)
    if match is None and (match := _HOOK.search(text, at, end)):
        match = match if looks_random(match["secret"], strict=True) else None
    if match and not is_not_secret(match["secret"]):
        yield span_of(match, "webhook")


def _user_info(match: re.Match[str]) -> Iterator[SecretSpan]:
    word, user = match["word"], match["user"]
    if word and word == user and word.isalpha() and word.islower():
        # `guest:guest` and other defaults.
        return
    if (
        word
        and len(word) > 3
        and word.lower() not in _LISTS["examples"]
        and not is_not_secret(word)
    ):
        yield span_of(match, "url_password", "word")
    if len(user) >= 12 and not is_not_secret(user) and looks_random(user, strict=bool(word)):
        yield span_of(match, "url_token", "user")


def _is_parameter(name: str, value: str) -> bool:
    if is_not_secret(value):
        return False
    low = name.lower()
    if low in _LISTS["signed"]:
        return len(value) >= 16
    found = NameWeight.TOKEN if low in _LISTS["parameters"] else name_weight(name)
    if low in ("code", "auth_code"):
        found = NameWeight.HINT
    if found is NameWeight.PASSWORD:
        return True
    return found is not NameWeight.NONE and looks_random(value, strict=found is NameWeight.HINT)


def find_cookies(page: SearchText) -> Iterator[SecretSpan]:
    for at in page.places(b" -b", exact=True):
        if line := _SENT_COOKIES.match(page.text, at):
            yield from _cookies(line)
    done = 0
    for at in page.places(b"cookie"):
        if at >= done and (line := _COOKIES.match(page.text, at)):
            done = line.end()
            yield from _cookies(line)


def _cookies(line: re.Match[str]) -> Iterator[SecretSpan]:
    for match in _COOKIE.finditer(line.string, line.start("all"), line.end("all")):
        name, value = match["name"], match["secret"]
        low = name.lower()
        if low in _LISTS["attributes"] or is_not_secret(value):
            continue
        named = name_weight(name) >= NameWeight.TOKEN or "sess" in low or "auth" in low
        if named or "sid" in low or looks_random(value, strict=True):
            yield span_of(match, "cookie")


# Options with a password in some programs.
_OPTION = regex(rb" -(?:[uawbUAPpXN] ?|passin|passout|pass |k |-us|-cr|-au|-wi|-pa)")
_OPERANDS = regex(TABLES.expressions["operands"])
_REST = regex(r"[^\s\"']*")


def find_operands(page: SearchText) -> Iterator[SecretSpan]:
    """Find passwords as operands of programs."""
    done = 0
    for option in _OPTION.finditer(page.data):
        at = option.start()
        if at < done:
            continue
        start = page.data.rfind(b"\n", 0, at) + 1
        end = page.data.find(b"\n", at)
        done = min(at + 300, end if end >= 0 else len(page.data))
        for match in _OPERANDS.finditer(page.text, max(start, at - 200), done):
            for group, value in match.groupdict().items():
                if value and not is_not_secret(value):
                    first, last = match.span(group)
                    # A long argument extends beyond the examined part of the line.
                    rest = _REST.match(page.text, last) if last == done else None
                    yield SecretSpan(start=first, end=rest.end() if rest else last, kind="password")


# Client constructors with credentials.
_CLIENT = regex(rb"(?:client|api|connect|session|token|bot|stripe|cipher)(?:\.\w{1,12})?\Z")
_CALLS = (
    *(b"getConnection(", b"NetworkCredential(", b"setCredentials(", b"jwt.encode(", b"jwt.sign("),
    *(b"jwt.verify(", b"jwt.decode(", b"createHmac(", b"hmac.new(", b"check_password("),
    *(b"set_password(", b"hash_password(", b"bcrypt.hash(", b"SetEnvironmentVariable("),
)
# Calls whose last string is a password of any length.
_PROOF = regex(
    rb"(?:login|auth\w{0,12}\s*=?\s*|credentials?|bind\w{0,4}|getconnection|setpassword|basicauth"
    rb"|cookieparser|setsecret|securestring|withcredentials|setcredentials)\Z"
)
_GIVEN = regex(r"[^()\n]{8,400}(?=\))")
_WORD = regex(r"[\"'](?P<secret>[^\s\"']{8,256})[\"']")
_STRING = regex(r"[\"'](?P<secret>[A-Za-z0-9_+/=.-]{20,256})[\"']")


def find_in_client_calls(page: SearchText) -> Iterator[SecretSpan]:
    """Find positional secrets of client calls."""
    for opening in (b'("', b"('"):
        for at in page.places(opening, exact=True):
            if _PROOF.search(page.low, max(0, at - 24), at):
                yield from _last_argument(page.text, at + 1)
            elif _CLIENT.search(page.low, max(0, at - 24), at):
                yield from _random_arguments(page.text, at + 1)
    for name in _CALLS:
        for at in page.places(name, exact=True):
            yield from _last_argument(page.text, at + len(name))


def _last_argument(text: str, at: int) -> Iterator[SecretSpan]:
    arguments = _GIVEN.match(text, at)
    words = list(_WORD.finditer(text, at, arguments.end())) if arguments else []
    if words and not is_not_secret(words[-1]["secret"]) and is_chosen(words[-1]["secret"]):
        yield span_of(words[-1], "password")


def _random_arguments(text: str, at: int) -> Iterator[SecretSpan]:
    arguments = _GIVEN.match(text, at)
    for match in _STRING.finditer(text, at, arguments.end()) if arguments else ():
        value = match["secret"]
        mixed = value != value.lower() and value != value.upper()
        if mixed and not is_not_secret(value) and looks_random(value, strict=True):
            yield span_of(match, "password")


def _is_announced(secret: str) -> bool:
    """Whether the value cannot be a word or a name with underscores and dots."""
    if looks_random(secret, strict=False):
        return _has_digits(secret) or is_jumbled(secret)
    if BY_HEART.fullmatch(secret) and secret.lower() != secret:
        return True
    signs = any(not each.isalnum() and each not in "_-./'" for each in secret)
    return secret.isascii() and signs and _has_digits(secret) and len(secret) >= 6


def _has_digits(secret: str) -> bool:
    return any(map(str.isdigit, secret))


# Checks of searches.toml.
_CHECKS: dict[str, Callable[[str], bool]] = {
    "possible": lambda secret: not is_not_secret(secret),
    "no_code": lambda secret: not is_code(secret),
    "random": lambda secret: looks_random(secret, strict=True),
    "mixed": lambda secret: looks_random(secret, strict=False),
    "chosen": is_chosen,
    # Not a group id, a port or a name.
    "proof": lambda secret: is_chosen(secret) or looks_random(secret, strict=False),
    "announced": _is_announced,
    "digits": _has_digits,
    # Unlike words.
    "letters_and_digits": lambda secret: _has_digits(secret) and any(map(str.isalpha, secret)),
}


_BY_WORD: dict[bytes, list[Search]] = {}
for _search in TABLES.search:
    for _word in _search.words:
        _BY_WORD.setdefault(_word.encode("latin-1"), []).append(_search)


def run_searches(page: SearchText) -> Iterator[SecretSpan]:
    """Run the searches of searches.toml."""
    for search, match in _matches(page):
        secret = match["secret"]
        if search.trim and (end := compiled(search.trim).search(secret)):
            secret = secret[: end.start()]
        if all(_CHECKS[check](secret) for check in search.checks):
            start = match.start("secret")
            yield SecretSpan(start=start, end=start + len(secret), kind=search.kind)


def _matches(page: SearchText) -> Iterator[tuple[Search, re.Match[str]]]:
    for search in TABLES.search:
        if any(page.has(part) for part in search.contains):
            for each in compiled(search.expressions[0]).finditer(page.text):
                yield search, each
        if search.scripts and not page.text.isascii():
            for at, length in page.places_in_other_scripts(search.scripts):
                if match := _match_at(search, page, at, length):
                    yield search, match
    for word, searches in _BY_WORD.items():
        for at in page.places(word):
            for search in searches:
                if match := _match_at(search, page, at, len(word)):
                    yield search, match


def _match_at(search: Search, page: SearchText, at: int, length: int) -> re.Match[str] | None:
    """Return the match of a search at a word."""
    text = page.text
    if search.before and not compiled(search.before).search(text, max(0, at - 16), at):
        return None
    if search.begins == "before":
        return compiled(search.expressions[0]).search(text, max(0, at - 110), at)
    if search.begins == "after":
        at += length
    elif search.begins == "argument":
        at = page.data.rfind(b" ", max(0, at - 24), at) + 1
    elif search.begins == "line":
        start = page.data.rfind(b"\n", max(0, at - 60), at) + 1
        if not start and at >= 60:
            return None
        at = start
    matches = (compiled(expression).match(text, at) for expression in search.expressions)
    return next(filter(None, matches), None)


def find_secrets(page: SearchText) -> Iterator[SecretSpan]:
    yield from find_by_format(page)
    yield from find_by_field_name(page)
    yield from find_keys(page)
    yield from find_in_urls(page)
    yield from find_cookies(page)
    yield from find_operands(page)
    yield from find_in_client_calls(page)
    yield from run_searches(page)
    yield from find_in_columns(page)
