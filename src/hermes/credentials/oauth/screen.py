"""What a login needs of the surface that it runs on, and how it says that it failed."""

from __future__ import annotations

from typing import Protocol

from hermes.core.errors import ProviderError
from hermes.credentials.oauth.logins import Login


class Screen(Protocol):
    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        """Ask the person to open the address and to type the code there. `whole_url` has the code
        in it already, "" when there is no such address."""
        ...

    def show_page(self, url: str, *, paste: bool) -> None:
        """Ask the person to open the address; with `paste` to bring back what it shows."""
        ...

    async def pasted(self) -> str:
        """What the person pasted. Where nothing can be pasted it never returns."""
        ...


def login_failed(login: Login, why: str) -> ProviderError:
    again = f"run `hermes login {login.provider}` again"
    return ProviderError(f"The login at {login.name} failed: {why}; {again}.", reason="auth")
