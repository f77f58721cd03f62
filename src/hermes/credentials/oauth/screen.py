"""The user interface that a login needs."""

from __future__ import annotations

from typing import Protocol

from hermes.core.errors import ProviderError
from hermes.credentials.oauth.logins import Login


class LoginScreen(Protocol):
    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        """Asks the user to open `url` and enter the code. `whole_url` already contains the code;
        "" if there is none."""
        ...

    def show_page(self, url: str, *, paste: bool) -> None:
        """Asks the user to open `url`, and with `paste` to paste the resulting code."""
        ...

    async def pasted(self) -> str:
        """The pasted text. Never returns if pasting is not possible."""
        ...


def login_failed(login: Login, why: str) -> ProviderError:
    again = f"run `hermes login {login.provider}` again"
    return ProviderError(f"The login at {login.name} failed: {why}; {again}.", reason="auth")
