"""Finds secrets that a sentence names, in many languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.heuristics import (
    is_chosen,
    is_code,
    is_not_secret,
    is_prose,
    looks_random,
)
from hermes.policy.redact.spans import SearchText, SecretSpan

_VALUE = r"[\"'`]?(?P<secret>[^\s\"'`<>(){}$]{6,128})"
_BOTH = re.compile(
    r"(?:daten|identifiants|logins?|creds|credentials)[^\n:]{0,24}[:=]\s{0,3}[\w.@-]{1,64}"
    rf"\s?[/|:,]\s?{_VALUE}",
    re.IGNORECASE,
)
_AFTER_USER = re.compile(
    r"(?:user|username|login) \S{1,64}[\s,;]{1,2}(?:with )?(?:pass|pw|pwd|password)[ :=]{1,2}"
    + _VALUE,
    re.IGNORECASE,
)
_SAID = re.compile(
    r"(?<![\w-])(?:pwd?|creds)(?: (?:for|of|on|to) \S{1,30}(?: \S{1,20})?)?(?::| is| was|=)\s{1,3}"
    + _VALUE,
    re.IGNORECASE,
)
_COMMUNITY = re.compile(rf"community(?: string| name)?(?::| is|=)\s{{0,3}}{_VALUE}", re.IGNORECASE)
# Logins for several machines in one line.
_FOR_ALL = re.compile(
    r"login\s{1,8}\S{1,64}\s{1,8}password\s{1,8}(?P<secret>(?=\S*[\d%!#$&*+=?@^])\S{6,128})"
)
# A required word, and the pattern that may begin there. The value must look like a password.
_CHOSEN = (
    (b"daten", (_BOTH,)),
    (b"identifiants", (_BOTH,)),
    (b"login", (_BOTH, _AFTER_USER)),
    (b"cred", (_BOTH, _SAID)),
    (b"user", (_AFTER_USER,)),
    (b"pw", (_SAID,)),
    (b"community", (_COMMUNITY,)),
)
_PIN = re.compile(
    r" pin(?: code| number)?(?: (?:is|was)|:|=)\s{0,3}(?P<secret>\d{4,8})(?!\w)", re.I
)
_DOOR = re.compile(r"(?i:door|gate|alarm|entry|safe|locker)\Z")
_DOOR_CODE = re.compile(
    r" code(?: is|:|=)\s{1,3}(?P<secret>[#*]?\d{3,8}[#*]?)(?!\w)", re.IGNORECASE
)
_SPARE = re.compile(r"(?i:backup|recovery|scratch|rescue)\Z")
_SPARE_CODES = re.compile(
    r"(?i: codes?)(?:\s*\([^()\n]{0,60}\))?[^\n:]{0,40}:(?P<secret>(?:[\s,;]{1,4}(?:\d{1,2}[.)]\s)?"
    r"(?:[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,3}|\d{8,10}|\d{4} \d{4})(?![\w-])){1,20})"
)
_BEFORE_KEY = re.compile(r"(?P<secret>(?:0x)?[0-9a-fA-F]{64})\W{1,3}[\w' ]{0,24}\Z")


def in_prose(page: SearchText) -> Iterator[SecretSpan]:
    for word, expressions in _CHOSEN:
        for at in page.places(word):
            for expression in expressions:
                yield from _choose(expression.match(page.text, at))
            match = _FOR_ALL.match(page.text, at) if word == b"login" else None
            if match and not is_not_secret(match["secret"]):
                yield SecretSpan(
                    start=match.start("secret"), end=match.end("secret"), kind="password"
                )
    for at in page.places(b" pin"):
        if match := _PIN.match(page.text, at):
            yield SecretSpan(start=match.start("secret"), end=match.end("secret"), kind="pin")
    for at in page.places(b" code"):
        yield from _codes(page.text, at)
    for at in page.places(b"private key"):
        if match := _BEFORE_KEY.search(page.text, max(0, at - 110), at):
            yield SecretSpan(
                start=match.start("secret"), end=match.end("secret"), kind="private_key"
            )


def _codes(text: str, at: int) -> Iterator[SecretSpan]:
    """Door codes and backup codes."""
    if _DOOR.search(text, max(0, at - 8), at) and (match := _DOOR_CODE.match(text, at)):
        yield SecretSpan(start=match.start("secret"), end=match.end("secret"), kind="pin")
    if _SPARE.search(text, max(0, at - 8), at) and (match := _SPARE_CODES.match(text, at)):
        codes = match["secret"].lstrip(" \t\n,;")
        if any(letter.isdigit() for letter in codes):
            end = match.end("secret")
            yield SecretSpan(start=end - len(codes), end=end, kind="recovery_code")


def _choose(match: re.Match[str] | None) -> Iterator[SecretSpan]:
    if match is None:
        return
    secret = match["secret"].rstrip(".,;:?)")
    if is_chosen(secret) and not is_not_secret(secret) and not is_prose(secret):
        start = match.start("secret")
        yield SecretSpan(start=start, end=start + len(secret), kind="password")


# Lower case. ASCII words and words of other scripts are searched separately.
_PLAIN = tuple(
    word.encode("latin-1")
    for word in (
        *("mot de passe", "contraseña", "contrasena", "contrasenya", "senha", "palavra-passe"),
        *("passwort", "kennwort", "zugangscode", "wachtwoord", "lösenord", "losenord"),
        *("adgangskode", "passord", "salasana", "haslo", "heslo", "lozinka", "parola"),
        *("jelsz", "kata sandi", "sifre", "geslo"),
        *("clave", "chave", "chiave", "schlüssel", "clé", "jeton", "mot-de-passe"),
    )
)
# Before punctuation, `fields` handles these; here only sentences.
_ENGLISH = (b"password", b"passphrase", b"passcode", b"pin code", b"secret", b"token")
_SHORT = (b" pw", b" pwd", b" pass", b"\npw", b" passwd", b" creds")
_OTHER = (
    *(
        "пароль",
        "пароля",
        "паролем",
        "токен",
        "ключ",
        "密码",
        "密碼",
        "口令",
        "密钥",
        "密鑰",
        "令牌",
    ),
    *(
        "パスワード",
        "暗証番号",
        "トークン",
        "キー",
        "비밀번호",
        "암호",
        "토큰",
        "κωδικός",
        "κωδικος",
    ),
    *(
        "كلمة المرور",
        "كلمة السر",
        "סיסמה",
        "הסיסמה",
        "पासवर्ड",
        "รหัสผ่าน",
        "hasło",
        "şifre",
        "mật khẩu",
    ),
    *("гасло", "парола", "رمز عبور", "jelszó", "παρωλα", "пін-код", "parolă"),
)
_NOT_PLAIN = re.compile(r"[^\x00-\x7f]+")
_LETTERS = {name: frozenset(each for each in name if not each.isascii()) for name in _OTHER}
_OF = (
    r"(?:\s+(?:for|of|to|de|del|della|di|do|da|von|für|du|des|na|для|от)\s+\S{1,30}(?:\s\S{1,20}){0,3}"
    r"|\s+dell'\S{1,30})"
)
_SPOKEN_SAID = re.compile(
    rf"[^\W\d_]{{0,6}}[\"'`)*_]?(?:{_OF}|\s[^\W\d_]{{3,12}})?[\s*_\"'`]{{0,3}}"
    r"(?:[:：=]|(?:\s*(?:(?<!\w)(?:is|are|was|lautet|ist|es|est|é|è|e|fue|war|är|er|on|jest|je|to|этот"
    r"|это|là|la|adalah)\b|是|为|為|は|：|가|는|은|هي|הוא|היא|है|คือ):?))"
    r"\s{0,4}[\"'`“«「*]{0,2}(?P<secret>[^\s\"'`”»」<>，。、]{5,256})"
)
_SAID_OF = re.compile(
    rf"{_OF}\s{{0,2}}(?:[:=]|is\b|ist\b)\s{{0,4}}[\"'`“«*]{{0,2}}(?P<secret>[^\s\"'`”»<>]{{5,256}})"
)
_IS = re.compile(r"(?:\s(?:is|was|to|now)|:)\s{1,3}[\"'`]?(?P<secret>[^\s\"'`<>]{5,256})")
# App passwords: four groups of four letters.
_APP = re.compile(
    r"(?i)app(?:lication)?[ _-]?pass\w{0,5}\W{1,6}(?:is\W{1,3})?"
    r"(?P<secret>(?-i:[a-z]{4}(?: [a-z]{4}){3}))\b"
)
# In scripts without spaces, the sentence continues directly after the secret.
_SENTENCE = re.compile(r"(?<=[!-~])[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,8}$")
# Directly after the word, in quotation marks.
_QUOTED = re.compile(r"\s+(?P<quote>[\"'`“«])(?P<secret>[^\s\"'`”»<>]{5,128})[\"'`”»]")


def announced(page: SearchText) -> Iterator[SecretSpan]:
    for word in _PLAIN:
        for at in page.places(word):
            yield from _after(page.text, at + len(word), _SPOKEN_SAID)
    for word in _ENGLISH:
        for at in page.places(word):
            yield from _after(page.text, at + len(word), _SAID_OF)
    for word in _SHORT:
        for at in page.places(word):
            yield from _after(page.text, at + len(word), _IS)
    for at in (*page.places(b"app pass"), *page.places(b"app-pass"), *page.places(b"app_pass")):
        if match := _APP.match(page.text, at):
            yield SecretSpan(start=match.start("secret"), end=match.end("secret"), kind="password")
    if not page.text.isascii():
        yield from _in_other_scripts(page.text)


def _in_other_scripts(text: str) -> Iterator[SecretSpan]:
    """Most non-ASCII texts only have dashes or symbols, and none of these scripts."""
    letters = frozenset("".join(_NOT_PLAIN.findall(text)).lower())
    names = [name for name, own in _LETTERS.items() if own <= letters]
    low = text.lower() if names else ""
    for name in names if len(low) == len(text) else ():
        at = low.find(name)
        while at >= 0:
            yield from _after(text, at + len(name), _SPOKEN_SAID)
            at = low.find(name, at + 1)


def _after(text: str, at: int, said: re.Pattern[str]) -> Iterator[SecretSpan]:
    match = said.match(text, at) or _QUOTED.match(text, at)
    if match is None:
        return
    secret = _SENTENCE.sub("", match["secret"]).rstrip(".,;:!?)*")
    start = match.start("secret")
    if is_not_secret(secret) or is_prose(secret) or is_code(secret):
        return
    if _is_chosen(secret):
        yield SecretSpan(start=start, end=start + len(secret), kind="password")


def _is_chosen(secret: str) -> bool:
    """Whether the value cannot be a word or a name with underscores and dots."""
    if looks_random(secret, strict=False):
        return True
    signs = sum(not each.isalnum() and each not in "_-./'" for each in secret)
    digits = sum(each.isdigit() for each in secret)
    return secret.isascii() and signs > 0 and digits > 0 and len(secret) >= 6
