"""Runs all finders of secrets: key blocks, URLs, headers, fields, formats and people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hermes.policy.redact.fields import find_by_field_name, find_in_columns
from hermes.policy.redact.formats import find_by_format, find_otp_keys
from hermes.policy.redact.heuristics import NameWeight, is_not_secret, looks_random, name_weight
from hermes.policy.redact.in_prose import announced, in_prose
from hermes.policy.redact.operands import clients, commands, devices, kept_words
from hermes.policy.redact.spans import SearchText, SecretSpan

_PHONE = re.compile(r"\+[1-9]\d{9,14}(?!\w)")
_NOT_BEFORE_PHONE = re.compile(r"[\w+.=&-]")
_SPACED_PHONE = re.compile(r"(?<![\w+.])\+[1-9]\d{0,2}(?:[ .()-]{1,2}\d{2,4}){2,5}(?!\w)")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,63}){1,4}")
_ID = re.compile(
    r"(?i)(?<![\w])(?:user|chat|sender|member|account|customer|peer|from)[_ -]?id[\"']?\s*[:=]\s*"
    r"[\"']?(?P<id>[\w@.:+-]{4,64})"
)


def phones(text: str) -> Iterator[SecretSpan]:
    for match in _PHONE.finditer(text):
        if not _NOT_BEFORE_PHONE.match(text, match.start() - 1) or not match.start():
            yield SecretSpan(start=match.start(), end=match.end(), kind="phone")


def identities(text: str) -> Iterator[SecretSpan]:
    """Phone numbers in any spelling, mail addresses and user ids."""
    for expression, kind in ((_PHONE, "phone"), (_SPACED_PHONE, "phone"), (_MAIL, "email")):
        for match in expression.finditer(text):
            yield SecretSpan(start=match.start(), end=match.end(), kind=f"pii_{kind}")
    for match in _ID.finditer(text):
        yield SecretSpan(start=match.start("id"), end=match.end("id"), kind="pii_id")


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
# User and password of a connection on separate lines.
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
# A URL used as a path has lost a slash.
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
# The secret part of a webhook URL.
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


def key_blocks(page: SearchText) -> Iterator[SecretSpan]:
    text = page.text
    if "PRIVATE KEY" in text:
        for match in _BLOCK.finditer(text):
            # A block without a body is only mentioned.
            if len(match["body"].strip()) > len(match["what"]) + 30:
                yield SecretSpan(start=match.start(), end=match.end(), kind="private_key")
    if "Private-Lines" in text:
        for match in _PUTTY.finditer(text):
            group = "secret" if match["secret"] else "mac"
            yield _span(match, group, "private_key")
    if "OpenVPN Static" in text or "BEGIN SSH2" in text:
        yield from _secrets(_STATIC, text, "private_key")
    if "<auth-user-pass>" in text:
        yield from _secrets(_USER_PASS, text, "password")


def signed_tokens(page: SearchText) -> Iterator[SecretSpan]:
    for at in page.places(b"eyJ", exact=True):
        before = page.text[at - 1 : at] if at else ""
        if before.isalnum() or before in ("_", "-"):
            continue
        match = _JWT.match(page.text, at)
        if match and len(match[0]) >= 24:
            yield SecretSpan(start=match.start(), end=match.end(), kind="jwt")
    if '"kty"' in page.text:
        yield from _secrets(_JWK, page.text, "private_key")


def addresses(page: SearchText) -> Iterator[SecretSpan]:
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


def _webhook(text: str, at: int, end: int) -> Iterator[SecretSpan]:
    match = _WEBHOOK.search(text, at, end)
    if match is None and (match := _HOOK.search(text, at, end)):
        match = match if looks_random(match["secret"], strict=True) else None
    if match and not is_not_secret(match["secret"]):
        yield _span(match, "secret", "webhook")


def _user_info(match: re.Match[str]) -> Iterator[SecretSpan]:
    word, user = match["word"], match["user"]
    if word and word == user and word.isalpha() and word.islower():
        # `guest:guest` and other defaults.
        return
    if word and len(word) > 3 and word.lower() not in _EXAMPLE_WORDS and not is_not_secret(word):
        yield _span(match, "word", "url_password")
    if len(user) >= 12 and not is_not_secret(user) and looks_random(user, strict=bool(word)):
        yield _span(match, "user", "url_token")


def _is_parameter(name: str, value: str) -> bool:
    if is_not_secret(value):
        return False
    low = name.lower()
    if low in _SIGNED:
        return len(value) >= 16
    found = NameWeight.TOKEN if low in _ALWAYS else name_weight(name)
    if low in ("code", "auth_code"):
        found = NameWeight.HINT
    if found is NameWeight.PASSWORD:
        return True
    return found is not NameWeight.NONE and looks_random(value, strict=found is NameWeight.HINT)


def headers(page: SearchText) -> Iterator[SecretSpan]:
    for word in (b"bearer ", b"basic "):
        for at in page.places(word):
            match = _SCHEME.match(page.text, at)
            if match is None or is_not_secret(match["secret"]):
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


def _cookies(line: re.Match[str]) -> Iterator[SecretSpan]:
    for match in _COOKIE.finditer(line.string, line.start("all"), line.end("all")):
        if _is_cookie(match["name"], match["secret"]):
            yield _span(match, "secret", "cookie")


def _is_cookie(name: str, value: str) -> bool:
    low = name.lower()
    if low in _ATTRIBUTES or is_not_secret(value):
        return False
    told = name_weight(name) >= NameWeight.TOKEN or "sess" in low or "auth" in low or "sid" in low
    return told or looks_random(value, strict=True)


def _secrets(expression: re.Pattern[str], text: str, kind: str) -> Iterator[SecretSpan]:
    for match in expression.finditer(text):
        if not is_not_secret(match["secret"]):
            yield _span(match, "secret", kind)


def _span(match: re.Match[str], group: str, kind: str) -> SecretSpan:
    return SecretSpan(start=match.start(group), end=match.end(group), kind=kind)


SHAPES: tuple[Callable[[SearchText], Iterator[SecretSpan]], ...] = (
    key_blocks,
    signed_tokens,
    addresses,
    headers,
    commands,
    devices,
    clients,
    kept_words,
    announced,
    find_otp_keys,
    in_prose,
    find_in_columns,
)


_HEADLESS_KEY = re.compile(
    r"(?m)^[^\S\n]*(?:\d+[|:]\s?)?[A-Za-z0-9+/=]{1,76}$"
    r"(?:\n[^\S\n]*(?:\d+[|:]\s?)?[A-Za-z0-9+/=]{16,76}$)*+"
    r"\n[^\S\n]*(?:\d+[|:]\s?)?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
)


def find_secrets(page: SearchText) -> Iterator[SecretSpan]:
    yield from find_by_format(page)
    yield from find_by_field_name(page)
    for shape in SHAPES:
        yield from shape(page)
    yield from find_headless_keys(page)


def find_headless_keys(page: SearchText) -> Iterator[SecretSpan]:
    """The end of a private key whose beginning was cut off."""
    if b"PRIVATE KEY" not in page.data or b"-----END " not in page.data:
        return
    for match in _HEADLESS_KEY.finditer(page.text):
        yield SecretSpan(start=match.start(), end=match.end(), kind="private_key")


def find_numbers(text: str) -> Iterator[SecretSpan]:
    """Phone numbers, which are always masked."""
    yield from phones(text)


def find_people(text: str) -> Iterator[SecretSpan]:
    """Personal identifiers, if `pii` is on."""
    yield from identities(text)
