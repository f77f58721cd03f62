"""Decides whether a name denotes a secret and whether a value looks like one."""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class NameWeight(IntEnum):
    """What a name implies. PASSWORD: any value is secret. TOKEN: any value that is not a plain
    word. HINT: a random-looking value. NONE: nothing."""

    NONE = 0
    HINT = 1
    TOKEN = 2
    PASSWORD = 3


_PASSWORDS = frozenset(
    """
    password passwd passwort passphrase passcode pwd pword pass psk userpass
    dbpass dbpassword mdp contrasena senha pw storepass keypass requirepass masterauth
    """.split()
)
_TOKENS = frozenset(
    """
    secret token apikey apitoken apisecret authtoken accesstoken secretkey accesskey privatekey
    clientsecret credential credentials jwt bearer pat sas sastoken accountkey sharedaccesskey
    connectionstring webhooksecret sessiontoken refreshtoken authkey apppassword signingkey
    encryptionkey licensekey cookie sessionid phpsessid jsessionid sid xsrf csrftoken otp mnemonic
    seedphrase masterkey deploykey botsecret bottoken oauthtoken idtoken consumersecret
    sharedsecret apihash keystring
    """.split()
)
_ENDINGS = ("password", "passwd", "passphrase", "passwort", "storepass", "keypass")
# Words before "key" that make it a secret.
_KEYS = frozenset(
    """
    api secret access private encryption encrypt decryption signing sign master auth service
    session app application client webhook deploy license consumer account storage subscription
    shared hmac aes des rsa crypt bot admin project integration ingest rest write server
    functions function host azure aws openai anthropic stripe sendgrid twilio mailgun maps
    google gemini groq mistral cohere huggingface hf datadog dd newrelic algolia pinecone
    cloudflare cf digitalocean heroku github gitlab slack telegram discord tmdb nasa weather
    recovery backup vault unseal seed firebase supabase rails laravel flask django jwt cookie
    token kms data root ssh tls ssl
    tavily exa firecrawl fal serper serpapi brave deepgram elevenlabs assemblyai replicate wandb
    perplexity deepseek openrouter together fireworks cerebras xai voyage jina
    """.split()
)
# After the noun: the name is about a secret but does not hold it.
_ABOUT = frozenset(
    """
    count counts limit limits type types name names id ids url uri path file files filename dir
    length len size expiry expires expiration ttl policy field fields label hint header headers
    prefix suffix env var variable index class format version regex pattern rule rules reset
    hash hashed digest checksum salt algorithm strength manager provider store vault ref arn
    validator budget usage endpoint used error errors message required enabled rotation kind
    source location timeout age date at window lifetime lifespan status state valid validity
    min max minimum maximum placeholder param parameter mode scope scopes sha fingerprint
    """.split()
)
# Before the noun: another kind of key or token.
_OTHERS = frozenset(
    """
    public primary foreign sort cache partition row column dict map object translation message
    page next previous prev continuation cursor pad eos bos unk mask sep cls special stop end start
    verify verification lock request change upload export import
    first last cancel cancellation idempotency hot shortcut keyboard press index lookup
    group join natural surrogate composite candidate unique hash range pagination sync i18n
    locale query react list item sub max min total num input output completion prompt reasoning
    cached new old each this other same no without per by with lexer parser syntax lexical current
    visually publishable
    """.split()
)


# Services with API keys: a random-looking value next to their name is one.
_SERVICES = frozenset(
    """
    adafruit adzuna alchemy beamer bittrex bugsnag buildkite checkr clearbit coinbase contentful
    coveralls droneci etsy fastly finicity finnhub freshbooks freshdesk gitter gocardless infura
    keygen kraken kucoin linkedin lob looker messagebird moralis nytimes okta opsgenie pagerduty
    plaid polygon postmark pusher quickbooks rapidapi recharge sendbird sentry shodan sidekiq
    splunk statuspage strava sumologic tatum trello twitch unsplash urlscan virustotal yelp zendesk
    """.split()
)
# After the noun: still the secret itself.
_MATERIAL = frozenset(("data", "base", "material", "value", "raw"))


@lru_cache(maxsize=4096)
def name_weight(name: str) -> NameWeight:
    """What the name of a field implies about its value."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or (words[-1] in _ABOUT and words[-2:] != ["api", "hash"]):
        return NameWeight.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if before in _OTHERS:
        return NameWeight.NONE
    if len(words) == 1 and last in ("pat", "pass", "sas", "sid"):
        return NameWeight.TOKEN if last == "pass" else NameWeight.HINT
    if before in ("key", "secret", "token") and last in _MATERIAL:
        return NameWeight.TOKEN
    if last in _PASSWORDS or last.endswith(_ENDINGS):
        return NameWeight.PASSWORD
    if (
        last in _TOKENS
        or (before + last) in _TOKENS
        or last.endswith(("secret", "token", "apikey"))
    ):
        return NameWeight.TOKEN
    if last == "key":
        return NameWeight.TOKEN if before in _KEYS else NameWeight.HINT
    if last in (
        "auth",
        "authorization",
        "signature",
        "sig",
        "credentials",
        "secrets",
        "keys",
        "tokens",
        "sk",
        "appid",
    ):
        return NameWeight.HINT
    return NameWeight.NONE if _SERVICES.isdisjoint(words) else NameWeight.HINT


# A public key for browsers.
_PUBLISHED = re.compile(r"^pk_(?:live|test)_")
_DUMMY = re.compile(
    r"(?i)x{5,}|\*{3,}|\.{3}|…|your|[-_]here$|placeholder|change[-_]?me|replace[-_]?(?:me|this|with)"
    r"|insert[-_]|redacted|dummy|fake[-_]?(?:key|token|secret|api)|<[a-z]|not[-_]?a?[-_]?real"
    r"|(?<![a-z])(?:example|sample)[-_.]|(?-i:EXAM[PB]LE)|^(?:example|sample)|^(?-i:X{3,})(?:[/_-]|$)|^(?:my|the|some|test|a)[-_](?:secret|token|key|password|api)"
)
# One or two characters repeated after the prefix.
_EMPTY = re.compile(r"(?i)[-_]?([x0*.#-])\1*$")
# A look-up at run time, or a placeholder.
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
# Identifiers: words, optionally with a number at the end.
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
# Also several joined by colons, and mount options.
_PATH = re.compile(
    r"^(?:~|\.{1,2})?/[\w./~@-]*(?::(?:~|\.{1,2})?/[\w./~@-]*)*"
    r"(?::(?:r[ow]|[zZUO]|cached|delegated|consistent|no(?:copy|exec|suid|dev)|r?(?:shared|slave"
    r"|private)|[:,])+)?$"
    r"|^[A-Za-z]:\\|^(?:https?|ssh|git|s3|gs|file)://[^@]*$"
)
# Names of secrets, or of variables.
_CALLED = re.compile(
    r"^(?:[a-z]+\d{0,5}_){2,}(?:key|secret|token|password|file|path)$"
    r"|^\w+=\$\{?[A-Za-z_]\w*\}?$"
)
_NUMBER = re.compile(r"^[-+]?\d{1,7}(?:\.\d+)?(?:[a-z%]{0,3})?$")
_MASKED = re.compile(
    r"^\*+$|\.\.\.|^\[(?:secret|redacted|phone|email|id)|^\**redacted|^•+$|^x+$", re.I
)


def is_dummy(value: str) -> bool:
    """Whether the value is a placeholder."""
    if _DUMMY.search(value) is not None:
        return True
    tail = _EMPTY.search(value)
    return tail is not None and len(tail[0]) >= 12


def is_not_secret(value: str) -> bool:
    """Whether the value cannot be a secret, whatever its name."""
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
    """Whether the value is a code expression."""
    return len(value) < 200 and _CODE.match(value.rstrip(":,;")) is not None


def is_prose(value: str) -> bool:
    """Whether the value is a sentence about a secret."""
    words = re.findall(r"[A-Za-z']+", value.lower())
    return " " in value.strip() and any(word in PROSE for word in words)


_RANDOM_BITS = 2.8
_NAME_PART = re.compile(
    r"[A-Za-z]?[a-z]*|[A-Z]+|v?\d{1,4}|[a-z]+\d|(?:[A-Z][a-z]{2,})+\d{0,4}|\d{6,14}"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]|\d+")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_ONE_NAME = re.compile(r"[A-Za-z][a-z]+(?:[A-Z][a-z]+)*\d{0,2}")


def is_secret(value: str, name: str, found: NameWeight, *, quoted: bool, environment: bool) -> bool:
    """`environment`: the value comes from `NAME=value`, where it cannot be code."""
    # The beginning of a long value is enough, and hostile texts have very long ones.
    bare = value[:256].strip()
    if len(bare) < (3 if environment else 4) or is_not_secret(bare) or bare.lower() == name.lower():
        return False
    if is_prose(bare) or (not quoted and not environment and is_code(bare)):
        return False
    if environment and found >= NameWeight.TOKEN:
        return not is_number(bare) or found is NameWeight.PASSWORD
    if found is NameWeight.PASSWORD:
        return quoted or _can_stand_bare(bare)
    if is_number(bare) or " " in bare:
        return False
    return looks_random(bare, strict=found is NameWeight.HINT)


def _can_stand_bare(value: str) -> bool:
    """Whether an unquoted value cannot be a variable name."""
    return not (value.isidentifier() and "_" in value and value.islower())


def looks_random(value: str, *, strict: bool) -> bool:
    """Whether letters and digits are mixed unlike in names; `strict` needs a longer value."""
    if not value.isascii() or " " in value:
        return False
    core = value.strip("=.,;:!?\"'()")
    letters = any(letter.isalpha() for letter in core)
    digits = sum(letter.isdigit() for letter in core)
    if _is_named(core) or not letters:
        return False
    mixed = core.lower() != core and core.upper() != core
    if strict and _UUID.search(core):
        return False
    if strict:
        enough = digits >= 3 or (digits and mixed)
        return len(core) >= 20 and bool(enough) and _bits(core) > _RANDOM_BITS
    if len(core) >= 6 and digits:
        return True
    return len(core) >= 16 and mixed and _bits(core) > _RANDOM_BITS


def is_chosen(value: str) -> bool:
    """Whether the value looks like a chosen password: digits with capitals or punctuation."""
    core = value.strip(".,;:!?\"'()")
    inside = core.rstrip("0123456789")
    digits = any(letter.isdigit() for letter in inside)
    cased = core.lower() != core and core.upper() != core
    signs = any(not letter.isalnum() and letter not in "_-./'" for letter in core)
    letters = any(letter.isalpha() for letter in core)
    if len(core) >= 10 and core.isascii() and is_jumbled(core):
        return True
    many = sum(letter.isdigit() for letter in core) > 2
    return (
        len(core) >= 8
        and core.isascii()
        and letters
        and (digits and (cased or signs or (many and len(core) > 11)))
        and not _is_named(core)
    )


def is_jumbled(value: str) -> bool:
    """Whether case is mixed unlike in names: parts without vowels, or very short ones."""
    if not value.isalnum() or value.lower() == value or value.upper() == value:
        return False
    parts = _PARTS.findall(value)
    dumb = sum(len(part) > 2 and not _VOWEL.search(part) for part in parts)
    return len(parts) > 3 and (len(value) / len(parts) < 2.6 or dumb > 1)


def _is_named(value: str) -> bool:
    """Whether it consists of words and small numbers: `my-tls-secret-2`, `UserToken`, `gpt-4`."""
    parts = [part for part in re.split(r"[-_./:]", value) if part]
    if len(parts) < 2:
        return len(value) < 24 and _ONE_NAME.fullmatch(value) is not None
    return all(_NAME_PART.fullmatch(part) for part in parts)


def _bits(value: str) -> float:
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def kind_of_name(name: str) -> str:
    low = name.lower()
    for word, kind in (
        ("pass", "password"),
        ("pwd", "password"),
        ("cookie", "cookie"),
        ("sess", "session"),
        ("auth", "authorization"),
        ("secret", "secret"),
        ("token", "token"),
        ("key", "api_key"),
    ):
        if word in low:
            return kind
    return "secret"
