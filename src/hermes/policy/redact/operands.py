"""Finds secrets in command arguments, device configurations and client calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.heuristics import is_chosen, is_not_secret, looks_random
from hermes.policy.redact.spans import SearchText, SecretSpan

# Options with a password in some programs.
_OPTION = re.compile(rb" -(?:[uawbUAPpXN] ?|passin|passout|pass |k |-us|-cr|-au|-wi|-pa)")
_OPERANDS = re.compile(
    r"""(?x)
      \b(?:curl|wget|https?|xh)\s [^\n|;]*? (?<=\s)
        (?:-u|--user|--proxy-user|-U|-a|--auth)[ =]?["']?[^\s:"']+:(?P<c1>[^\s"'@]{3,})
    | sshpass\s+-p\s*["']?(?P<c2>[^\s"']{3,})
    | (?:mysql\w*|mariadb\S*)\s [^\n|;]*? (?<=\s)-p(?P<c3>[^\s"'-][^\s"']{2,})
    | (?:mysql\w*|mariadb\S*)\s [^\n|;]*? (?<=\s)-p["'](?P<c12>[^\s"']{3,})
    | redis-cli\s [^\n|;]*? (?<=\s)(?:-a|--pass)\s+["']?(?P<c4>[^\s"']{4,})
    | (?:docker|podman|az|oc|helm|skopeo|crane|buildah|cf|argocd)\s(?:registry\s)?login [^\n|;]*?
        \s(?:-p|--password)[\s=]+["']?(?P<c5>[^\s"']{4,})
    | openssl [^\n|;]*? \s-(?:passin|passout|pass|k)\s+(?:pass:)?
        (?P<c6>(?!file:|env:|stdin|fd:)[^\s"']{3,})
    | htpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+(?P<c7>[^\s"']{4,})
    | ldap\w+\s [^\n|;]*? \s-w\s+["']?(?P<c8>[^\s"']{4,})
    | (?:smbclient|rpcclient|crackmapexec|impacket-\w+|net\srpc) [^\n|;]*?
        -U\s*["']?[^\s%"']+%(?P<c9>[^\s"']{3,})
    | (?:mongo(?:sh|dump|restore|export|import)?|cqlsh|clickhouse-client|influx|sqlcmd|bcp|isql
        |ipmitool|rabbitmqadmin|vncviewer|rdesktop|evil-winrm|zip|7z|unzip|mosquitto_(?:pub|sub))
        \s [^\n|;]*?
        (?<=\s)(?:-p|-P|--password)[ =]?["']?(?P<c10>[^\s"'-][^\s"']{3,})
    | ssh-keygen\s [^\n|;]*? (?<=\s)-[PN][ ]+["']?(?P<c17>[^\s"'-][^\s"']{4,})
        (?:[^\n|;]*?\s-[PN][ ]+["']?(?P<c18>[^\s"'-][^\s"']{4,}))?
    | lftp\s [^\n|;]*? (?<=\s)-u[ ]?["']?[^\s,"']+,(?P<c19>[^\s"']{3,})
    | \bcurl\s [^\n|;]*? (?<=\s)-u[ ]?["']?
        (?P<c14>[A-Za-z0-9_-]{16,}):(?:[xX]|x-oauth-basic)?["']?(?=\s|$)
    | snmp\w+\s [^\n|;]*? (?<=\s)-A\s+["']?(?P<c15>[^\s"']{6,})
        (?:[^\n|;]*?\s-X\s+["']?(?P<c16>[^\s"']{6,}))?
    | snowsql [^\n|;]*? --password\s+["']?(?P<c13>[^\s"']{4,})
    """
)
_REST = re.compile(r"[^\s\"']*")
_PGPASS = re.compile(r"(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w.*-]+:[\w.*-]+:(?P<secret>\S{4,})$")
# Configurations of routers and switches.
_DEVICE = re.compile(
    r"(?m)^[ \t>#\w-]{0,40}?(?:snmp-server community|enable (?:secret|password)(?: \d)?"
    r"|username \S+ (?:privilege \d+ )?(?:password|secret)(?: \d)?"
    r"|(?:tacacs|radius)-server (?:host \S+ )?key(?: \d)?|crypto isakmp key"
    r"|neighbor \S+ password(?: \d)?|pre-shared-key(?: \w+)?(?: \d)?|key-string(?: \d)?"
    r"|wpa-psk ascii(?: \d)?|rocommunity6?|rwcommunity6?)[ \t]+(?P<secret>\S{4,})"
)
_DEVICES = (b"snmp-server", b"enable secret", b"enable password", b"username ", b"-server ",
            b"isakmp key", b"neighbor ", b"pre-shared-key", b"key-string", b"wpa-psk",
            b"ocommunity", b"wcommunity")  # fmt: skip
# Programs that get a secret on stdin or as an argument.
_PIPED = re.compile(
    r"(?:echo|printf)\s+(?:-n\s+)?(?:['\"]%s['\"]\s+)?[\"']?(?P<secret>[^\s\"'|$`]{6,512})[\"']?\s*\|\s*"
    r"(?:[^\n|]{0,160}?(?:--password-stdin|--with-token|passphrase-fd|--token-stdin|pass-stdin"
    r"|login\b|sudo\s+-S|chpasswd|passwd\b|cryptsetup|kinit\b|ssh-add|smbpasswd|openssl\b))"
)
_LOGIN = re.compile(
    r"\b(?:login|authtoken|set-token|activate|authenticate)\s+(?:--?[\w-]+[= ])?[\"']?"
    r"(?P<secret>[A-Za-z0-9_.=+/-]{24,512})(?![A-Za-z0-9_.=+/-])"
)
_COMMUNITY = re.compile(
    r"snmp\w+\s[^\n|;]{0,80}?\s-c\s+[\"']?(?P<secret>(?!public\b|private\b)[^\s\"']{4,64})"
)
_REMOTE_DESKTOP = re.compile(r"freerdp\d?\s[^\n|;]{0,160}?/p:[\"']?(?P<secret>[^\s\"']{3,128})")
_ADDED_USER = re.compile(
    r"rabbitmqctl\s+(?:add_user|change_password)\s+\S+\s+[\"']?(?P<secret>[^\s\"']{4,})"
)
_GIVEN_WORD = re.compile(
    r"(?i)(?:net\s+use\s[^\n]{0,120}?/user:\S+\s+|/pass:|\bidentify\s+(?:\w+\s+(?=\S*\d))?"
    r"|vncpasswd[^\n]{0,20}<<<\s*|securestring\s+(?:-string\s+)?[\"']?)"
    r"[\"']?(?P<secret>[^\s\"'$*-][^\s\"']{5,128})"
)
# `name:password`.
_PAIR = re.compile(
    r"(?:stats auth|login=|auth=|user=|credentials?[:=]|creds[:=]|login:)\s*[\"']?[\w.@-]{1,64}[:/]"
    r"(?P<secret>[^\s:\"'@/]{6,128})(?=[\s\"',;)]|$)"
)
# An option that takes both: `-auth name:token`.
_BOTH = re.compile(
    r"-{1,2}(?:[a-z]+-){0,2}(?:auth|user|login|userpass|creds?|credentials?|account)[ =][\"']?"
    r"[\w.@\\+-]{1,64}:(?P<secret>[^\s:\"'/]{6,128})(?=[\s\"',;)]|$)"
)
_MAIL_PAIR = re.compile(r"[\w-]+\.[A-Za-z]{2,10}:(?P<secret>[^\s:/\"'@]{8,128})(?=\s|$|[,;\"'])")
_ACCOUNTS = re.compile(r"[\w\"']{0,8}\s*[:=]\s*\[\s*[\"'](?P<secret>0x[0-9a-fA-F]{64})")
_ORACLE = re.compile(
    r"(?:jdbc:oracle:\w+:|\b(?:sqlplus|sqlldr|expdp|impdp|rman)\s+(?:-\w+\s+){0,3})"
    r"[\w$#]{1,40}/(?P<secret>[^\s@/\"']{3,})@"
)
# netrc files, in one line or several.
_NETRC = re.compile(
    r"machine\s{1,8}\S{1,128}\s{1,8}login\s{1,8}\S{1,128}\s{1,8}"
    r"(?:account\s{1,8}\S{1,128}\s{1,8})?password\s{1,8}[\"']?(?P<secret>[^\s\"']{3,256})"
)
_SONAR = re.compile(r"sonar\.login[=:]\s*(?P<secret>[A-Za-z0-9_]{20,})")
# Client constructors with credentials.
_CLIENT = re.compile(rb"(?:client|api|connect|session|token|bot|stripe|cipher)(?:\.\w{1,12})?\Z")
_CALLS = (
    *(b"getConnection(", b"NetworkCredential(", b"setCredentials(", b"jwt.encode(", b"jwt.sign("),
    *(b"jwt.verify(", b"jwt.decode(", b"createHmac(", b"hmac.new(", b"check_password("),
    *(b"set_password(", b"hash_password(", b"bcrypt.hash(", b"SetEnvironmentVariable("),
)
# Calls whose last string is a password of any length.
_PROOF = re.compile(
    rb"(?:login|auth\w{0,12}\s*=?\s*|credentials?|bind\w{0,4}|getconnection|setpassword|basicauth"
    rb"|cookieparser|setsecret|securestring|withcredentials|setcredentials)\Z"
)
_GIVEN = re.compile(r"[^()\n]{8,400}(?=\))")
_WORD = re.compile(r"[\"'](?P<secret>[^\s\"']{8,256})[\"']")
_STRING = re.compile(r"[\"'](?P<secret>[A-Za-z0-9_+/=.-]{20,256})[\"']")
_PHRASED = re.compile(
    rb"(?:mnemonic|(?:seed|recovery|secret|backup|wallet)[ _-]?(?:phrase|words?)|bip-?39)\Z"
)
_PHRASE = re.compile(
    r"\w{0,6}[\"'*)]{0,3}(?:\s*\([^()\n]{0,60}\)|\s+(?:for|of|to)\s[^:\n]{1,40})?"
    r"(?:\s+(?:is|are|was))?\s*(?:[:=]|->|-)?[\s\"'`*]{0,6}"
    r"(?P<secret>(?:(?:1[.)]\s?)?[a-z]{3,8}(?:[ ,\n]{1,3}(?:\d{1,2}[.):]\s?)?[a-z]{3,8}){11,23}"
    r"|[A-Z]{3,8}(?:[ ,]{1,2}[A-Z]{3,8}){11,23}))"
)
# A line of /etc/shadow or htpasswd.
_HASH = re.compile(
    r"(?m)^[ \t+-]{0,8}[\w.@-]{1,64}:(?P<secret>\$(?:apr1|1|2[abxy]|5|6|7|y|gy|argon2(?:id|i|d))\$"
    r"[./A-Za-z0-9$=,+-]{20,})"
)


def commands(page: SearchText) -> Iterator[SecretSpan]:
    """Passwords as operands of programs."""
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
                    yield _to_the_end(page.text, match, group, done)
    if any(port in page.text for port in (":*:", ":543", ":6432:")):
        yield from _make_span(_PGPASS, page.text)
    yield from _pairs(page)
    for word, expression, random in _TOLD:
        for at in page.places(word):
            yield from _around(page, at, expression, random=random)


def _pairs(page: SearchText) -> Iterator[SecretSpan]:
    """`name:secret` in one option."""
    for word in (b"-auth", b"-user", b"-cred"):
        for at in page.places(word):
            match = _BOTH.match(page.text, page.data.rfind(b" ", max(0, at - 24), at) + 1)
            if match and not is_not_secret(match["secret"]) and _is_proof(match["secret"]):
                yield _span(match, "secret")


def _is_proof(value: str) -> bool:
    """Whether it is not a group id, a port or a name."""
    return is_chosen(value) or looks_random(value, strict=False)


def _to_the_end(text: str, match: re.Match[str], group: str, done: int) -> SecretSpan:
    """Extends a long argument beyond the examined part of the line."""
    start, end = match.span(group)
    rest = _REST.match(text, end) if end == done else None
    return SecretSpan(start=start, end=rest.end() if rest else end, kind="password")


# A required word, and the pattern around it.
_TOLD = (
    (b"echo ", _PIPED, False),
    (b"printf ", _PIPED, False),
    (b"login ", _LOGIN, True),
    (b"authtoken ", _LOGIN, True),
    (b"jdbc:oracle", _ORACLE, False),
    (b"sqlplus ", _ORACLE, False),
    (b"sonar.login", _SONAR, True),
    (b"machine ", _NETRC, False),
    (b"net use ", _GIVEN_WORD, False),
    (b"/pass:", _GIVEN_WORD, False),
    (b"identify ", _GIVEN_WORD, False),
    (b"vncpasswd", _GIVEN_WORD, False),
    (b"snmp", _COMMUNITY, False),
    (b"freerdp", _REMOTE_DESKTOP, False),
    (b"securestring ", _GIVEN_WORD, False),
    (b"rabbitmqctl ", _ADDED_USER, False),
    (b"stats auth", _PAIR, False),
    (b"login=", _PAIR, False),
    (b"credentials", _PAIR, False),
    (b"creds", _PAIR, False),
    (b"login:", _PAIR, False),
    (b"accounts", re.compile("accounts" + _ACCOUNTS.pattern), False),
)


def _around(
    page: SearchText, at: int, expression: re.Pattern[str], *, random: bool
) -> Iterator[SecretSpan]:
    match = expression.match(page.text, at)
    if match is None or is_not_secret(match["secret"]):
        return
    if not random or looks_random(match["secret"], strict=True):
        yield _span(match, "secret")


def devices(page: SearchText) -> Iterator[SecretSpan]:
    for word in _DEVICES:
        for at in page.places(word):
            start = page.data.rfind(b"\n", max(0, at - 60), at) + 1
            match = _DEVICE.match(page.text, start) if start or at < 60 else None
            if match and not is_not_secret(match["secret"]):
                yield _span(match, "secret")


def clients(page: SearchText) -> Iterator[SecretSpan]:
    """Positional secrets of client calls."""
    for opening in (b'("', b"('"):
        for at in page.places(opening, exact=True):
            if _PROOF.search(page.low, max(0, at - 24), at):
                yield from _last(page.text, at + 1)
            elif _CLIENT.search(page.low, max(0, at - 24), at):
                yield from _given_argument(page.text, at + 1)
    for name in _CALLS:
        for at in page.places(name, exact=True):
            yield from _last(page.text, at + len(name))
    for at in page.places(b"@"):
        match = _MAIL_PAIR.match(page.text, at + 1)
        if match and looks_random(match["secret"], strict=False):
            yield _span(match, "secret")


def _last(text: str, at: int) -> Iterator[SecretSpan]:
    given = _GIVEN.match(text, at)
    words = list(_WORD.finditer(text, at, given.end())) if given else []
    if words and not is_not_secret(words[-1]["secret"]) and is_chosen(words[-1]["secret"]):
        yield _span(words[-1], "secret")


def _given_argument(text: str, at: int) -> Iterator[SecretSpan]:
    given = _GIVEN.match(text, at)
    for match in _STRING.finditer(text, at, given.end()) if given else ():
        value = match["secret"]
        mixed = value != value.lower() and value != value.upper()
        if mixed and not is_not_secret(value) and looks_random(value, strict=True):
            yield _span(match, "secret")


def kept_words(page: SearchText) -> Iterator[SecretSpan]:
    """Wallet seed phrases and password hashes."""
    for word in (b"mnemonic", b"phrase", b"bip39", b"bip-39", b"words", b"word"):
        for at in page.places(word):
            match = _PHRASE.match(page.text, at + len(word))
            if match and _PHRASED.search(page.low, max(0, at - 16), at + len(word)):
                yield SecretSpan(
                    start=match.start("secret"), end=match.end("secret"), kind="seed_phrase"
                )
    if ":$" in page.text:
        yield from _make_span(_HASH, page.text, kind="password_hash")


def _make_span(
    expression: re.Pattern[str], text: str, kind: str = "password"
) -> Iterator[SecretSpan]:
    for match in expression.finditer(text):
        if not is_not_secret(match["secret"]):
            yield SecretSpan(start=match.start("secret"), end=match.end("secret"), kind=kind)


def _span(match: re.Match[str], group: str) -> SecretSpan:
    return SecretSpan(start=match.start(group), end=match.end(group), kind="password")
