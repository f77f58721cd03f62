"""Tells by its name whether a field, variable, header or option holds a secret."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Weight(IntEnum):
    """How much a name tells. PASSWORD: whatever it holds is secret. TOKEN: a value that is not a
    plain word. HINT: a value that looks random. NONE: nothing."""

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
# Words before "key" with which it is one that must be kept.
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
# After the noun: the name is about a secret, and not its place.
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


# Services that give out keys: beside their names a value that looks random is one.
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
def weight(name: str) -> Weight:
    """What the name of a field tells about its value."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or (words[-1] in _ABOUT and words[-2:] != ["api", "hash"]):
        return Weight.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if before in _OTHERS:
        return Weight.NONE
    if len(words) == 1 and last in ("pat", "pass", "sas", "sid"):
        return Weight.TOKEN if last == "pass" else Weight.HINT
    if before in ("key", "secret", "token") and last in _MATERIAL:
        return Weight.TOKEN
    if last in _PASSWORDS or last.endswith(_ENDINGS):
        return Weight.PASSWORD
    if (
        last in _TOKENS
        or (before + last) in _TOKENS
        or last.endswith(("secret", "token", "apikey"))
    ):
        return Weight.TOKEN
    if last == "key":
        return Weight.TOKEN if before in _KEYS else Weight.HINT
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
        return Weight.HINT
    return Weight.NONE if _SERVICES.isdisjoint(words) else Weight.HINT
