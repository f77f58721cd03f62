"""What looks like a secret and is none: placeholders, look-ups, types, words, public values."""

from __future__ import annotations

import re

# A key for the browser, which everybody may see.
_PUBLISHED = re.compile(r"^pk_(?:live|test)_")
_DUMMY = re.compile(
    r"(?i)x{5,}|\*{3,}|\.{3}|…|your|[-_]here$|placeholder|change[-_]?me|replace[-_]?(?:me|this|with)"
    r"|insert[-_]|redacted|dummy|fake[-_]?(?:key|token|secret|api)|<[a-z]|not[-_]?a?[-_]?real"
    r"|(?<![a-z])(?:example|sample)[-_.]|(?-i:EXAM[PB]LE)|^(?:example|sample)|^(?-i:X{3,})(?:[/_-]|$)|^(?:my|the|some|test|a)[-_](?:secret|token|key|password|api)"
)
# The part after the prefix says nothing: one or two letters, over and over.
_EMPTY = re.compile(r"(?i)[-_]?([x0*.#-])\1*$")
# A value that is fetched at run time, or stands for something that is filled in later.
_LOOKUP = re.compile(
    r"""(?ix) ^(?:
      (?!\$(?:1|5|6|y|apr1)\$)[$%]\{? [\w(]
    | \$\{\{ | base64\( | \{\{ | \{[\w.!:]*\}$ | <[^>]*>?$ | %\( | %[sdv]$ | @[\w.{]
    | (?:os\.|process\.|import\.meta\.|deno\.|bun\.|std::|system\.)?(?:env|environ|getenv)\b
    | (?:os|process|sys|settings|config|cfg|conf|self|this|options|opts|args|ctx|props|params
       | request|req|state|data|user|session|secrets?|vault|environ|environment|app|client)[.\[\-?]
    | env[.:(\[] | \w+\.env\. | enc\[ | op:// | vault: | arn: | ssm: | sops | secret[s_]?manager
    | ref\+ | keyring: | keychain: | bws: | projects/[^/]+/secrets | file: | \\u0024\{
    | !(?:ref|sub|vault|secret|env)\b | secretkeyref | fromenv | lookup\(
    )"""
)
# Names as people make them up: words, one after the other, with a number at most at the end.
_NAME = (
    r"_*(?:[A-Za-z]?[a-z]+(?:[A-Z][a-z]+|[A-Z]{2,4}(?=[A-Z]|$|_)|_[a-z]*)*\d{0,2}_*|[A-Z_]+|[a-z])"
)
_CODE = re.compile(
    rf"""(?x) ^(?:
      {_NAME}(?:(?:\.|::|->|\?\.){_NAME})+ (?:[(\[].*)?          # chains: a.b, a::b(c)
    | [A-Za-z_][\w.]*[(\[{{<] .*                                 # calls and generics
    | (?:await|new|async|function|lambda|return|if|not|self|this|cls)\b .*
    | [A-Z][a-z]+(?:[A-Z][a-z]+)*                                # SecretStr
    )$"""
)
WORDS = frozenset(
    """
    string str text bytes number int integer bool boolean any object array list dict map optional
    required none null nil undefined void true false yes no on off enabled disabled default auto
    password passwd pass pwd secret token key value values credential credentials apikey api_key
    basic bearer digest oauth oauth2 jwt hmac saml ldap oidc mtls none_ inherit include omit
    same-origin plain plaintext hidden masked invalid expired missing empty unknown unset test
    example sample dummy foo bar baz todo tbd n/a na is are was the a an your my for to of and or
    with in must should not will can has have cannot when from that this it if be as by
    username user admin_password name id type field input label public private primary unique
    self cls arg args param params env environment file path url uri header cookie session
    readonly write read always never latest stable utf-8 ascii hex base64 aes rsa sha256 md5 ssl
    prompt ask manual automatic varchar char blob uuid guid date time float double decimal json
    yaml xml passwort kennwort contraseña senha wachtwoord lösenord hasło heslo salasana пароль
    postgres mysql root guest admin administrator rabbitmq minioadmin toor changeit
    """.split()
)
PROSE = frozenset(
    """
    your the must should enter please is are was were a an invalid required forgot reset not for
    to of and with least characters too short wrong incorrect change confirm new old current used
    use using be will can cannot has have when if or from by in on this that it field value name
    missing expired valid provided provide set never always only both match matches
    """.split()
)
_HASHED = re.compile(
    r"(?i)^(?:sha(?:1|224|256|384|512)|md5|blake2b?)[-:=~$]|^\$2[aby]\$|^\$argon2|^[{]ssha"
)
# Also several with colons between them, and what a container is told about one.
_PATH = re.compile(
    r"^(?:~|\.{1,2})?/[\w./~@-]*(?::(?:~|\.{1,2})?/[\w./~@-]*)*"
    r"(?::(?:r[ow]|[zZUO]|cached|delegated|consistent|no(?:copy|exec|suid|dev)|r?(?:shared|slave"
    r"|private)|[:,])+)?$"
    r"|^[A-Za-z]:\\|^(?:https?|ssh|git|s3|gs|file)://[^@]*$"
)
# How a secret is called, or a name that is given the value of a variable.
_CALLED = re.compile(
    r"^(?:[a-z]+\d{0,5}_){2,}(?:key|secret|token|password|file|path)$"
    r"|^\w+=\$\{?[A-Za-z_]\w*\}?$"
)
_NUMBER = re.compile(r"^[-+]?\d{1,7}(?:\.\d+)?(?:[a-z%]{0,3})?$")
_MASKED = re.compile(
    r"^\*+$|\.\.\.|^\[(?:secret|redacted|phone|email|id)|^\**redacted|^•+$|^x+$", re.I
)


def is_dummy(value: str) -> bool:
    """Obviously put in place of a real one."""
    if _DUMMY.search(value) is not None:
        return True
    tail = _EMPTY.search(value)
    return tail is not None and len(tail[0]) >= 12


def is_no_secret(value: str) -> bool:
    """Nothing that a person would have to keep to themselves, whatever its name says."""
    bare = value.strip().rstrip("):,;")
    low = bare.lower()
    return (
        low.rstrip(".!?") in WORDS
        or bool(_MASKED.search(bare))
        or bool(_LOOKUP.match(bare))
        or bool(_HASHED.match(bare))
        or bool(_PUBLISHED.match(bare))
        or bool(_PATH.match(bare))
        or bool(_CALLED.match(bare))
        or is_dummy(bare)
    )


def is_number(value: str) -> bool:
    return _NUMBER.match(value) is not None


def is_code(value: str) -> bool:
    """An expression of a programming language rather than a value."""
    return len(value) < 200 and _CODE.match(value.rstrip(":,;")) is not None


def is_prose(value: str) -> bool:
    """A sentence about a secret rather than one."""
    words = re.findall(r"[A-Za-z']+", value.lower())
    return " " in value.strip() and any(word in PROSE for word in words)
