"""Secrets that are told by what stands around them: key blocks, addresses, headers, commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hermes.policy.redact.codes import second_steps
from hermes.policy.redact.columns import in_columns
from hermes.policy.redact.lookalikes import is_no_secret
from hermes.policy.redact.names import Weight, weight
from hermes.policy.redact.operands import clients, commands, devices, kept_words
from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import Span
from hermes.policy.redact.spoken import announced
from hermes.policy.redact.strength import looks_random
from hermes.policy.redact.told import told

_BLOCK = re.compile(
    r"-----BEGIN (?P<what>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
    r"(?P<body>.{0,32768}?-----END (?P=what)-----|(?:\\[nr]|[A-Za-z0-9+/=\s:,-])*)",
    re.S,
)
_PUTTY = re.compile(
    r"Private-Lines: \d+\r?\n(?P<secret>(?:(?!Private)[A-Za-z0-9+/=]{4,}\r?\n?)+)"
    r"|Private-MAC: (?P<mac>[0-9a-f]{40,})"
)
_STATIC = re.compile(
    r"-{4,5} ?BEGIN (?:OpenVPN Static key V\d|SSH2 ENCRYPTED PRIVATE KEY) ?-{4,5}"
    r"(?P<secret>[\s\S]{20,8192}?)(?:-{4,5} ?END|\Z)"
)
# Name and password of a connection, a line each.
_USER_PASS = re.compile(
    r"<auth-user-pass>\s{0,4}\n[^\n]{1,128}\n[ \t]{0,8}(?P<secret>[^\n<]{4,256})"
)
_DIGEST = re.compile(r"(?i)digest [^\n]{0,600}?\bresponse=[\"']?(?P<secret>[0-9a-f]{32,128})")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){2,4}")
_JWK = re.compile(r'"(?:d|p|q|dp|dq|qi|k)"\s*:\s*"(?P<secret>[A-Za-z0-9_-]{16,})"')
_USER_INFO = re.compile(
    r"://(?P<user>[^\s/@:\"'<>`\\]{0,256})(?::(?P<word>[^\s@\"'<>`]{0,256}))?@(?=[\w\[$%{.])"
)
# The user of a mail server is a mail address.
_MAIL_USER = re.compile(
    r"://(?P<user>[^\s/@:\"'<>`\\]{1,128}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5})"
    r":(?P<word>[^\s@/\"'<>`]{4,256})@(?=[\w\[$%{.])"
)
# As a path, an address has lost a stroke.
_FOLDED = re.compile(
    r":/(?P<user>[^\s/@:\"'<>`\\]{1,256}):(?P<word>[^\s@/\"'<>`]{4,256})@(?=[\w\[$%{.])"
)
_URL = re.compile(r"[^\s\"'<>`]{4,4096}")
_PARAMETER = re.compile(r"[?&](?:amp;)?(?P<name>[\w.\[\]-]{1,40})=(?P<secret>[^\s&#\"'<>`;)]{4,})")
_SIGNED = frozenset("sig signature x-amz-signature x-goog-signature x-amz-security-token".split())
_ALWAYS = frozenset("key auth sid session token secret jwt appid app_key".split())
_SCHEME = re.compile(r"(?i)(?:bearer|basic)[ \t]+(?P<secret>[A-Za-z0-9._~+/=-]{12,})")
_COOKIES = re.compile(
    r"(?i)cookies?(?:[\"']?\s*(?:[:=]|,\s*[\"']value[\"']\s*:)\s*|[ \t]+(?=[\"']?[\w.%-]+=))"
    r"[\"']?(?P<all>[^\n\"']{3,4096})"
)
# As curl is given them.
_SENT_COOKIES = re.compile(r" -b[ =]?[\"']?(?P<all>[\w.%-]{1,64}=[^\n\"']{6,4096})")
# The last part of an address to which anybody may post who knows it.
_HOOK = re.compile(
    r"/(?:incoming-?)?(?:web)?hooks?/(?:[\w-]{1,40}/){0,3}?(?P<secret>[A-Za-z0-9_-]{20,})(?![\w/-])"
)
_COOKIE = re.compile(r"(?P<name>[\w.%-]+)=(?P<secret>[^;,\s\"']{6,})")
_ATTRIBUTES = frozenset(
    "path domain expires max-age samesite priority version secure httponly partitioned".split()
)
_WEBHOOK = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/\d+/"
    r"|\.webhook\.office\.com/webhookb2/|outlook\.office(?:365)?\.com/webhook/|hooks\.zapier\.com/hooks/catch/\d+/"
    r"|maker\.ifttt\.com/(?:trigger/\w+/)?with/key/|api\.telegram\.org/(?:file/)?bot"
    r"|/open-apis/bot/v2/hook/|infura\.io/(?:ws/)?v3/|alchemy\.com/v2/|quiknode\.pro/"
    r"|ankr\.com/\w+/|webhook\.site/(?=[0-9a-f])|discord(?:app)?\.com/api/webhooks/\d+/)(?P<secret>[A-Za-z0-9_:/@.=&%-]{8,})"
)
_EXAMPLE_WORDS = frozenset("password pass passwd pw secret pwd token key".split())


def key_blocks(page: Page) -> Iterator[Span]:
    text = page.text
    if "PRIVATE KEY" in text:
        for match in _BLOCK.finditer(text):
            # A block without a body is only mentioned.
            if len(match["body"].strip()) > len(match["what"]) + 30:
                yield Span(start=match.start(), end=match.end(), kind="private_key")
    if "Private-Lines" in text:
        for match in _PUTTY.finditer(text):
            group = "secret" if match["secret"] else "mac"
            yield _span(match, group, "private_key")
    if "OpenVPN Static" in text or "BEGIN SSH2" in text:
        yield from _secrets(_STATIC, text, "private_key")
    if "<auth-user-pass>" in text:
        yield from _secrets(_USER_PASS, text, "password")


def signed_tokens(page: Page) -> Iterator[Span]:
    for at in page.places(b"eyJ", exact=True):
        before = page.text[at - 1 : at] if at else ""
        if before.isalnum() or before in ("_", "-"):
            continue
        match = _JWT.match(page.text, at)
        if match and len(match[0]) >= 24:
            yield Span(start=match.start(), end=match.end(), kind="jwt")
    if '"kty"' in page.text:
        yield from _secrets(_JWK, page.text, "private_key")


def addresses(page: Page) -> Iterator[Span]:
    """Passwords and tokens in URLs: before the host, in the query, in the path of a webhook."""
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
                yield _span(match, "secret", "url_parameter")
        yield from _webhook(page.text, at, done)


def _webhook(text: str, at: int, end: int) -> Iterator[Span]:
    match = _WEBHOOK.search(text, at, end)
    if match is None and (match := _HOOK.search(text, at, end)):
        match = match if looks_random(match["secret"], strict=True) else None
    if match and not is_no_secret(match["secret"]):
        yield _span(match, "secret", "webhook")


def _user_info(match: re.Match[str]) -> Iterator[Span]:
    word, user = match["word"], match["user"]
    if word and word == user and word.isalpha() and word.islower():
        # `guest:guest`, as it comes out of the box.
        return
    if word and len(word) > 3 and word.lower() not in _EXAMPLE_WORDS and not is_no_secret(word):
        yield _span(match, "word", "url_password")
    if len(user) >= 12 and not is_no_secret(user) and looks_random(user, strict=bool(word)):
        yield _span(match, "user", "url_token")


def _is_parameter(name: str, value: str) -> bool:
    if is_no_secret(value):
        return False
    low = name.lower()
    if low in _SIGNED:
        return len(value) >= 16
    found = Weight.TOKEN if low in _ALWAYS else weight(name)
    if low in ("code", "auth_code"):
        found = Weight.HINT
    if found is Weight.PASSWORD:
        return True
    return found is not Weight.NONE and looks_random(value, strict=found is Weight.HINT)


def headers(page: Page) -> Iterator[Span]:
    for word in (b"bearer ", b"basic "):
        for at in page.places(word):
            match = _SCHEME.match(page.text, at)
            if match is None or is_no_secret(match["secret"]):
                continue
            if looks_random(match["secret"], strict=False):
                yield _span(match, "secret", "authorization")
    for at in page.places(b"digest "):
        if match := _DIGEST.match(page.text, at):
            yield _span(match, "secret", "authorization")
    for at in page.places(b" -b", exact=True):
        if line := _SENT_COOKIES.match(page.text, at):
            yield from _cookies(line)
    done = 0
    for at in page.places(b"cookie"):
        if at >= done and (line := _COOKIES.match(page.text, at)):
            done = line.end()
            yield from _cookies(line)


def _cookies(line: re.Match[str]) -> Iterator[Span]:
    for match in _COOKIE.finditer(line.string, line.start("all"), line.end("all")):
        if _is_cookie(match["name"], match["secret"]):
            yield _span(match, "secret", "cookie")


def _is_cookie(name: str, value: str) -> bool:
    low = name.lower()
    if low in _ATTRIBUTES or is_no_secret(value):
        return False
    told = weight(name) >= Weight.TOKEN or "sess" in low or "auth" in low or "sid" in low
    return told or looks_random(value, strict=True)


def _secrets(expression: re.Pattern[str], text: str, kind: str) -> Iterator[Span]:
    for match in expression.finditer(text):
        if not is_no_secret(match["secret"]):
            yield _span(match, "secret", kind)


def _span(match: re.Match[str], group: str, kind: str) -> Span:
    return Span(start=match.start(group), end=match.end(group), kind=kind)


SHAPES: tuple[Callable[[Page], Iterator[Span]], ...] = (
    key_blocks,
    signed_tokens,
    addresses,
    headers,
    commands,
    devices,
    clients,
    kept_words,
    announced,
    second_steps,
    told,
    in_columns,
)
