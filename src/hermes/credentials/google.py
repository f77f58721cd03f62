"""Google Cloud credentials: a service account key or the login of the gcloud CLI, and the access
tokens that Google issues for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.credentials.oauth.client import (
    OAuthErrorResponse,
    TokenEndpoint,
    TokenSet,
    refresh_tokens,
    request_tokens,
)
from hermes.credentials.oauth.signed_jwt import parse_private_key, sign_jwt
from hermes.net.addresses import host_of, is_local
from hermes.net.http import HttpClient
from hermes.providers.endpoint import GOOGLE_FILE

GCLOUD_FOLDER = ".config/gcloud"
GCLOUD_FILE = "application_default_credentials.json"
GCLOUD_VARIABLE = "CLOUDSDK_CONFIG"
GCLOUD_LOGIN = "gcloud auth application-default login"
HOW_TO = f"set {GOOGLE_FILE} to a service account key file, or run `{GCLOUD_LOGIN}`"
_TOKEN_URL = "https://oauth2.googleapis.com/token"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SECONDS = 3600
_DEFAULT_LOCATION = "global"
_HOST = "aiplatform.googleapis.com"


class GoogleCredentials(Value):
    """The fields of a credentials file that are used here."""

    type: str = ""
    project_id: str = ""
    quota_project_id: str = ""
    token_uri: str = _TOKEN_URL
    # A service account.
    client_email: str = ""
    private_key: str = ""
    private_key_id: str = ""
    # The login of a person.
    client_id: str = ""
    client_secret: str = ""
    refresh_token: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(type={self.type!r}, project={self.project!r})"

    @property
    def project(self) -> str:
        return self.project_id or self.quota_project_id

    @property
    def is_complete(self) -> bool:
        match self.type:
            case "service_account":
                return bool(self.client_email and self.private_key)
            case "authorized_user":
                return bool(self.client_id and self.refresh_token)
            case _:
                return False


def parse_credentials(data: bytes) -> GoogleCredentials | None:
    """Parse a credentials file; None if it is of a kind that is not supported."""
    try:
        found = decode(GoogleCredentials, data)
    except DecodeError:
        return None
    return found if found.is_complete else None


def read_credentials(path: str) -> GoogleCredentials:
    """Read a credentials file. Raises ConfigError."""
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(
            f"The Google credentials file {path} cannot be read ({error.strerror}); {HOW_TO}."
        ) from error
    found = parse_credentials(data)
    if found is None:
        raise ConfigError(
            f"{path} has neither a service account key nor a login of the gcloud CLI; {HOW_TO}."
        )
    return found


def credentials_file(variable: Callable[[str], str]) -> str:
    """Return the path of the credentials file: the one that is configured, else that of the gcloud
    CLI; "" if there is none."""
    if configured := variable(GOOGLE_FILE):
        return configured
    home = variable("HOME")
    folder = variable(GCLOUD_VARIABLE) or (f"{home}/{GCLOUD_FOLDER}" if home else "")
    path = Path(folder) / GCLOUD_FILE
    return str(path) if folder and path.exists() else ""


def vertex_url(variable: Callable[[str], str]) -> str:
    """Return the address of Vertex AI for the configured project and location. Raises
    ConfigError."""
    path = credentials_file(variable)
    if not path:
        raise ConfigError(f"Google Vertex AI needs Google Cloud credentials; {HOW_TO}.")
    credentials = read_credentials(path)
    project = variable("GOOGLE_CLOUD_PROJECT") or credentials.project
    if not project:
        raise ConfigError(
            "Google Vertex AI needs a project, and the credentials name none; run "
            "`hermes config set GOOGLE_CLOUD_PROJECT …`."
        )
    location = variable("GOOGLE_CLOUD_LOCATION") or _DEFAULT_LOCATION
    host = _HOST if location == _DEFAULT_LOCATION else f"{location}-{_HOST}"
    return f"https://{host}/v1/projects/{project}/locations/{location}"


async def request_google_token(
    path: str, *, http: HttpClient, now: float
) -> TokenSet | OAuthErrorResponse:
    """Request an access token for the credentials in a file. The file is read each time, because
    its owner may replace it. Its `account_id` is the project that pays for a person's requests.
    Raises ConfigError."""
    credentials = read_credentials(path)
    url = credentials.token_uri
    if not url.startswith("https://") and not is_local(host_of(url)):
        raise ConfigError(f"The token_uri in {path} is not an https address; correct it.")
    if credentials.type == "service_account":
        grant = {"grant_type": _GRANT, "assertion": _assertion(credentials, int(now), path)}
        return await request_tokens(TokenEndpoint(url=url), grant, http=http, now=now)
    endpoint = TokenEndpoint(
        url=url, client_id=credentials.client_id, client_secret=credentials.client_secret
    )
    tokens = await refresh_tokens(endpoint, credentials.refresh_token, http=http, now=now)
    if isinstance(tokens, TokenSet):
        return replace(tokens, account_id=credentials.quota_project_id)
    return tokens


def _assertion(credentials: GoogleCredentials, now: int, path: str) -> str:
    """Return the signed statement that a service account exchanges for an access token."""
    claims = {
        "iss": credentials.client_email,
        "scope": _SCOPE,
        "aud": credentials.token_uri,
        "iat": now,
        "exp": now + _SECONDS,
    }
    try:
        key = parse_private_key(credentials.private_key)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return sign_jwt(claims, key, key_id=credentials.private_key_id)
