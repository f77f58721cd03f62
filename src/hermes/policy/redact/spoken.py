"""Secrets that a word of some language announces: `Пароль: …`, `La contraseña es …`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.lookalikes import is_code, is_no_secret, is_prose
from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import Span
from hermes.policy.redact.strength import looks_random

# In small letters. Words of plain letters and words of other scripts are searched apart.
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
# Fields know these before a sign; what is left is a sentence.
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
_SAID = re.compile(
    rf"[^\W\d_]{{0,6}}[\"'`)*_]?(?:{_OF}|\s[^\W\d_]{{3,12}})?[\s*_\"'`]{{0,3}}"
    r"(?:[:：=]|(?:\s*(?:(?<!\w)(?:is|are|was|lautet|ist|es|est|é|è|e|fue|war|är|er|on|jest|je|to|этот"
    r"|это|là|la|adalah)\b|是|为|為|は|：|가|는|은|هي|הוא|היא|है|คือ):?))"
    r"\s{0,4}[\"'`“«「*]{0,2}(?P<secret>[^\s\"'`”»」<>，。、]{5,256})"
)
_SAID_OF = re.compile(
    rf"{_OF}\s{{0,2}}(?:[:=]|is\b|ist\b)\s{{0,4}}[\"'`“«*]{{0,2}}(?P<secret>[^\s\"'`”»<>]{{5,256}})"
)
_IS = re.compile(r"(?:\s(?:is|was|to|now)|:)\s{1,3}[\"'`]?(?P<secret>[^\s\"'`<>]{5,256})")
# As one large mail service writes them: four times four letters.
_APP = re.compile(
    r"(?i)app(?:lication)?[ _-]?pass\w{0,5}\W{1,6}(?:is\W{1,3})?"
    r"(?P<secret>(?-i:[a-z]{4}(?: [a-z]{4}){3}))\b"
)
# Where no space is written between words, the sentence goes on right behind the secret.
_SENTENCE = re.compile(r"(?<=[!-~])[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,8}$")
# Right behind the word, in quotation marks.
_QUOTED = re.compile(r"\s+(?P<quote>[\"'`“«])(?P<secret>[^\s\"'`”»<>]{5,128})[\"'`”»]")


def announced(page: Page) -> Iterator[Span]:
    for word in _PLAIN:
        for at in page.places(word):
            yield from _after(page.text, at + len(word), _SAID)
    for word in _ENGLISH:
        for at in page.places(word):
            yield from _after(page.text, at + len(word), _SAID_OF)
    for word in _SHORT:
        for at in page.places(word):
            yield from _after(page.text, at + len(word), _IS)
    for at in (*page.places(b"app pass"), *page.places(b"app-pass"), *page.places(b"app_pass")):
        if match := _APP.match(page.text, at):
            yield Span(start=match.start("secret"), end=match.end("secret"), kind="password")
    if not page.text.isascii():
        yield from _in_other_scripts(page.text)


def _in_other_scripts(text: str) -> Iterator[Span]:
    """Most texts that are not plain have a dash or a sign in them, and no letter of these words."""
    letters = frozenset("".join(_NOT_PLAIN.findall(text)).lower())
    names = [name for name, own in _LETTERS.items() if own <= letters]
    low = text.lower() if names else ""
    for name in names if len(low) == len(text) else ():
        at = low.find(name)
        while at >= 0:
            yield from _after(text, at + len(name), _SAID)
            at = low.find(name, at + 1)


def _after(text: str, at: int, said: re.Pattern[str]) -> Iterator[Span]:
    match = said.match(text, at) or _QUOTED.match(text, at)
    if match is None:
        return
    secret = _SENTENCE.sub("", match["secret"]).rstrip(".,;:!?)*")
    start = match.start("secret")
    if is_no_secret(secret) or is_prose(secret) or is_code(secret):
        return
    if _is_chosen(secret):
        yield Span(start=start, end=start + len(secret), kind="password")


def _is_chosen(secret: str) -> bool:
    """Nobody writes a word of a sentence like this. An underscore and a dot are for names."""
    if looks_random(secret, strict=False):
        return True
    signs = sum(not each.isalnum() and each not in "_-./'" for each in secret)
    digits = sum(each.isdigit() for each in secret)
    return secret.isascii() and signs > 0 and digits > 0 and len(secret) >= 6
