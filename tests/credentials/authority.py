"""An authorization server as strict as real ones: device codes, PKCE, refresh tokens that work
once, revocation, and a clock of its own."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlencode

from hermes.codec.values import JsonObject
from tests.loopback import Asked, Said

CLIENT = "client-of-this-test"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Authority:
    """`answers` are what polls for a device code get until they run out; then the person agrees.
    `skew` is how far its clock is ahead. `lifetime` is that of access tokens."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        answers: tuple[str, ...] = (),
        skew: float = 0.0,
        lifetime: float = 3600.0,
        rotates: bool = True,
        tells_lifetime: bool = True,
    ) -> None:
        self._clock = clock
        self.answers = list(answers)
        self.skew = skew
        self.lifetime = lifetime
        self.rotates = rotates
        self.tells_lifetime = tells_lifetime
        self.url = ""
        self.interval = 5
        self.expires_in = 900
        self.broken = False
        self.asked: list[Asked] = []
        self.arrived = asyncio.Event()
        self.refreshes: Counter[str] = Counter()
        self.revoked: list[str] = []
        self._numbers = itertools.count(1)
        self._access: dict[str, tuple[str, float]] = {}
        self._refresh: dict[str, str] = {}
        self._dead: set[str] = set()
        self._codes: dict[str, str] = {}
        self.account = "account-7"

    def now(self) -> float:
        return self._clock() + self.skew

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def accepts(self, token: str) -> bool:
        """Whether a model behind this authority answers to the token."""
        family, until = self._access.get(token, ("", 0.0))
        return bool(family) and family not in self._dead and until > self.now()

    def issue(self, family: str) -> JsonObject:
        """Tokens as the token endpoint answers them."""
        number = next(self._numbers)
        access, refresh = self._jwt(number), f"refresh-{family}-{number}"
        self._access[access] = (family, self.now() + self.lifetime)
        self._refresh[refresh] = family
        lifetime = {"expires_in": self.lifetime} if self.tells_lifetime else {}
        return {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "bearer",
            **lifetime,
        }

    def revoke(self, family: str) -> None:
        self._dead.add(family)

    def forget_access(self) -> None:
        """All access tokens end at once; refresh tokens stay good."""
        self._access.clear()

    def answer(self, asked: Asked) -> Said:
        self.asked.append(asked)
        self.arrived.set()
        if self.broken:
            return Said(502, "<html>bad gateway</html>")
        match asked.method, asked.path:
            case "POST", "/device/code":
                return self._device_code(asked.fields)
            case "POST", "/token":
                return self._token(asked.fields)
            case "GET", "/authorize":
                return self._authorize(asked.query)
            case "POST", "/revoke":
                self.revoked.append(asked.fields["token"])
                return Said(200)
            case "GET", "/.well-known/openid-configuration":
                return Said(200, self._discovery())
            case "POST", "/api/accounts/deviceauth/usercode":
                return self._codex_code(asked.fields)
            case "POST", "/api/accounts/deviceauth/token":
                return self._codex_poll(asked.fields)
            case "GET", "/copilot_internal/v2/token":
                return self._exchange(asked)
            case _:
                return Said(404, {"error": "not_found"})

    def _device_code(self, fields: dict[str, str]) -> Said:
        if fields.get("client_id") != CLIENT:
            return _refused("invalid_client", 401)
        return Said(
            200,
            {
                "device_code": "device-1",
                "user_code": "WXYZ-1234",
                "verification_uri": f"{self.url}/activate",
                "verification_uri_complete": f"{self.url}/activate?code=WXYZ-1234",
                "expires_in": self.expires_in,
                "interval": self.interval,
            },
        )

    def _token(self, fields: dict[str, str]) -> Said:
        if fields.get("client_id") != CLIENT:
            return _refused("invalid_client", 401)
        match fields.get("grant_type"):
            case "refresh_token":
                return self._refreshed(fields["refresh_token"])
            case "authorization_code":
                return self._code(fields)
            case grant if grant == DEVICE_GRANT and fields.get("device_code") == "device-1":
                if self.answers:
                    return _refused(self.answers.pop(0))
                return Said(200, self.issue("device"))
            case _:
                return _refused("invalid_request")

    def _refreshed(self, token: str) -> Said:
        self.refreshes[token] += 1
        family = self._refresh.get(token)
        if family is None or family in self._dead:
            return _refused("invalid_grant")
        if self.rotates and self.refreshes[token] > 1:
            self._dead.add(family)
            return _refused("refresh_token_reused")
        tokens = self.issue(family)
        if not self.rotates:
            self._refresh.pop(tokens.pop("refresh_token"))
        return Said(200, tokens)

    def _authorize(self, query: dict[str, str]) -> Said:
        """What the browser of a person who agrees is sent back with."""
        assert query["code_challenge_method"] == "S256"
        code = f"code-{next(self._numbers)}"
        self._codes[code] = query["code_challenge"]
        back = urlencode({"code": code, "state": query["state"]})
        return Said(302, headers={"location": f"{query['redirect_uri']}?{back}"})

    def _code(self, fields: dict[str, str]) -> Said:
        challenge = self._codes.pop(fields.get("code", ""), None)
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        if challenge != base64.urlsafe_b64encode(digest).rstrip(b"=").decode():
            return _refused("invalid_grant")
        return Said(200, self.issue("browser"))

    def _codex_code(self, fields: dict[str, str]) -> Said:
        if fields.get("client_id") != CLIENT:
            return _refused("invalid_client", 401)
        answer = {"user_code": "CODE-1", "device_auth_id": "d1", "interval": str(self.interval)}
        return Said(200, answer)

    def _codex_poll(self, fields: dict[str, str]) -> Said:
        assert fields == {"device_auth_id": "d1", "user_code": "CODE-1"}
        if self.answers:
            return Said(int(self.answers.pop(0)), {"error": {"code": "deviceauth_pending"}})
        verifier = "v" * 43
        digest = hashlib.sha256(verifier.encode()).digest()
        self._codes["codex"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return Said(200, {"authorization_code": "codex", "code_verifier": verifier})

    def _exchange(self, asked: Asked) -> Said:
        """A token that lasts for one that models accept."""
        token = asked.headers.get("authorization", "").removeprefix("token ")
        family, until = self._access.get(token, ("", 0.0))
        if token.startswith("gho_"):
            family, until = "gh", self.now() + 1
        if not family or family in self._dead or until <= self.now():
            return Said(401, {"message": "Bad credentials"})
        made = f"tid={next(self._numbers)}"
        self._access[made] = (family, self.now() + 1500)
        return Said(
            200,
            {
                "token": made,
                "expires_at": int(self.now()) + 1500,
                "refresh_in": 1380,
                "endpoints": {"api": f"{self.url}/models"},
            },
        )

    def _discovery(self) -> JsonObject:
        return {
            "device_authorization_endpoint": f"{self.url}/device/code",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "revocation_endpoint": f"{self.url}/revoke",
        }

    def _jwt(self, number: int) -> str:
        claims = {
            "n": number,
            "iat": int(self.now()),
            "exp": int(self.now() + self.lifetime),
            "https://api.openai.com/auth": {"chatgpt_account_id": self.account},
        }
        return ".".join(_base64(part) for part in ({"alg": "none"}, claims, {"s": number}))


def _base64(value: JsonObject) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _refused(code: str, status: int = 400) -> Said:
    return Said(status, {"error": code, "error_description": code.replace("_", " ")})
