"""`hermes auth`, `login` and `logout`: API keys and logins of providers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from getpass import getpass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.config.diagnostics import Level
from hermes.config.environment import process_environment
from hermes.core.errors import NotFound, UsageError
from hermes.credentials.accounts import Accounts, open_accounts
from hermes.surfaces.cli.command_context import apply_style, config_of, mark, run
from hermes.surfaces.cli.output import Output, json_output, table, text_output

if TYPE_CHECKING:
    from hermes.credentials.admin import AccountRow

T = TypeVar("T")


def with_accounts(ctx: click.Context, work: Callable[[Accounts], Coroutine[Any, Any, T]]) -> T:
    """Await `work` with the accounts of the home."""

    async def whole() -> T:
        async with open_accounts(config_of(ctx), env=process_environment()) as accounts:
            return await work(accounts)

    return run(whole())


class TerminalScreen:
    """Prints the login URL, and opens a browser if there is one."""

    def __init__(self, *, browser: bool) -> None:
        self._browser = browser and _has_browser(process_environment())

    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        print(f"Open  {apply_style(whole_url or url, 'bold')}")
        print(f"and {'check' if whole_url else 'type in'} the code  {apply_style(code, 'bold')}")
        print(f"Waiting for up to {max(1, round(seconds / 60))} min; Ctrl+C stops.", flush=True)
        self._open(whole_url or url)

    def show_page(self, url: str, *, paste: bool) -> None:
        print(f"Open  {apply_style(url, 'bold')}")
        if paste:
            print("If the browser does not return here, paste the code that it shows:")
        sys.stdout.flush()
        self._open(url)

    async def read_pasted(self) -> str:
        """A line of stdin. Not read in a thread, which could not be cancelled when the browser
        returns first."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            text = sys.stdin.readline()
            if text.strip() and not line.done():
                line.set_result(text)
            elif not text:
                loop.remove_reader(sys.stdin)

        try:
            loop.add_reader(sys.stdin, read)
        except (OSError, ValueError):
            return await line
        try:
            return await line
        finally:
            loop.remove_reader(sys.stdin)

    def _open(self, url: str) -> None:
        if self._browser:
            import webbrowser

            webbrowser.open(url)


def _has_browser(env: Mapping[str, str]) -> bool:
    """False over a remote shell, and where only a text browser could open."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


@click.command(help="Log in to a provider; the default is the one in the settings.")
@click.argument("provider", required=False, default="")
@click.option("--provider", "named", default="", metavar="NAME", help="The same as the argument.")
@click.option("--no-browser", is_flag=True, help="Print the URL instead of opening a browser.")
@click.option("--label", default="", help="A name for a second login at the same provider.")
@text_output()
def login_command(
    ctx: click.Context, provider: str, named: str, no_browser: bool, label: str
) -> list[str]:
    provider = provider or named
    chosen = provider or config_of(ctx).settings.model.provider

    async def work(accounts: Accounts) -> list[str]:
        if not chosen or (not provider and accounts.known_name(chosen) not in accounts.logins()):
            raise UsageError(f"Name a provider: {', '.join(accounts.logins())}.")
        row = await accounts.log_in(chosen, TerminalScreen(browser=not no_browser), label=label)
        choose = f"`hermes config set model.provider {row.provider}` or `hermes -m`"
        return [
            f"{mark('ok')} logged in to {row.provider} ({row.label})",
            f"Choose a model with {choose}.",
        ]

    return with_accounts(ctx, work)


@click.command(help="Log out of a provider; the default is the most recent login.")
@click.argument("provider", required=False, default="")
@click.option("--provider", "named", default="", metavar="NAME", help="The same as the argument.")
@text_output(with_accounts)
async def logout_command(accounts: Accounts, provider: str, named: str) -> list[str]:
    return await log_out(accounts, provider or named)


async def log_out(accounts: Accounts, provider: str) -> list[str]:
    provider = provider or accounts.active_provider()
    removed = await accounts.log_out(provider) if provider else ()
    if not removed:
        what = f"There is no login at {provider}" if provider else "There is no login"
        raise NotFound(f"{what}; `hermes auth list` shows all keys and logins.")
    return [
        f"logged out of {row.provider} ({row.label}), "
        + ("on this machine" if row.why else "and the provider revoked the token")
        for row in removed
    ]


WIDTHS = (3, 22, 8, 26)
WHY = {"rate_limit": "rate limit", "billing": "no credit", "auth": "refused"}


@click.group(
    help="API keys and logins of providers. Without a command: status.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@command.command("list", help="List all keys and logins, or those of one provider.")
@click.argument("provider", required=False, default="")
@json_output(with_accounts)
async def list_(accounts: Accounts, provider: str) -> Output:
    rows = await accounts.rows(provider)
    return Output(rows, _list_lines(rows, provider))


def _list_lines(rows: tuple[AccountRow, ...], provider: str) -> Iterator[str]:
    if not rows:
        whose = f"{provider} has no key" if provider else "There is no key or login yet"
        yield f"{whose}; `hermes auth add {provider or 'PROVIDER'}` adds one."
    for name in dict.fromkeys(row.provider for row in rows):
        yield apply_style(name, "bold")
        head = ("#", "Label", "Type", "Source", "Status")
        yield from table([head, *(_cells(row) for row in rows if row.provider == name)], WIDTHS)
        yield ""


def _cells(row: AccountRow) -> tuple[str, str, str, str, str]:
    source = f"{row.source} ({row.kept_in})" if row.kept_in else row.source
    kind = "login" if row.type == "oauth" else "key"
    return (str(row.index), row.label or row.id, kind, source, _condition(row))


def _condition(row: AccountRow) -> str:
    if row.status == "resting":
        words = f"paused for {_span(row.left_seconds)} ({WHY.get(row.why, row.why)})"
    elif row.status == "ok":
        words = "ok"
    else:
        words = f"{row.status}: {row.why}" if row.why else row.status
    return f"{words} ←" if row.current else words


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"


@command.command(help="Show the state of each provider's keys, and what needs attention.")
@json_output(with_accounts)
async def status(accounts: Accounts) -> Output:
    rows, active = await accounts.rows(), accounts.active_provider()
    data = {"active_provider": active, "keyring": accounts.has_keyring(), "accounts": rows}
    return Output(data, _status_lines(rows, active))


def _status_lines(rows: tuple[AccountRow, ...], active: str) -> Iterator[str]:
    if not rows:
        yield "There is no key or login yet; `hermes auth add PROVIDER` or `hermes login`."
    for name in dict.fromkeys(row.provider for row in rows):
        own = [row for row in rows if row.provider == name]
        healthy = sum(row.status == "ok" for row in own)
        level: Level = "ok" if healthy == len(own) else "warn" if healthy else "error"
        words = f"{healthy} of {len(own)} ready" if len(own) > 1 else _condition(own[0])
        login = apply_style("  (last login)", "dim") if active == name else ""
        yield f"{mark(level)} {name:<18} {words.rstrip(' ←')}{login}"
        for row in own:
            if advice := _advice(row):
                yield f"    {row.label or row.id}: {advice}"


def _advice(row: AccountRow) -> str:
    if row.status == "dead" and row.type == "oauth":
        return f"the login has ended ({row.why}); run `hermes login {row.provider}`"
    if row.status in ("dead", "expired"):
        return f"cannot be used ({row.why or row.status})"
    if row.status == "resting" and row.why == "auth":
        remedy = f"`hermes auth remove {row.provider} {row.index}`"
        return f"was refused; check it, or remove it with {remedy}"
    if row.status == "resting" and row.why == "billing":
        return f"has no credit; add some, then `hermes auth reset {row.provider}`"
    return ""


@command.command(help="Add a key (prompted, or from stdin) or a login for a provider.")
@click.argument("provider")
@click.option("--type", "kind", type=click.Choice(["api-key", "oauth"]), help="What to add.")
@click.option("--api-key", metavar="KEY", help="The key; better typed in at the prompt.")
@click.option("--label", default="", help="A name to recognize it by.")
@click.option("--no-browser", is_flag=True, help="Print the URL instead of opening a browser.")
@text_output()
def add(
    ctx: click.Context,
    provider: str,
    kind: str | None,
    api_key: str | None,
    label: str,
    no_browser: bool,
) -> str:
    if kind == "oauth" and api_key is not None:
        raise UsageError("--api-key and --type oauth exclude each other; give one of them.")

    async def needs_key(accounts: Accounts) -> bool:
        return kind == "api-key" or (kind is None and accounts.takes_keys(provider))

    # Prompt outside the event loop, so that Ctrl+C works at once.
    if api_key is None and with_accounts(ctx, needs_key):
        api_key = _prompt_key(provider)

    async def work(accounts: Accounts) -> AccountRow:
        if api_key is not None:
            return await accounts.add_key(provider, api_key, label=label)
        screen = TerminalScreen(browser=not no_browser)
        return await accounts.log_in(provider, screen, label=label)

    row = with_accounts(ctx, work)
    place = f" (in the {row.kept_in})" if row.kept_in else ""
    return f"{mark('ok')} {row.provider}: {row.label or row.id} is number {row.index}{place}"


def _prompt_key(provider: str) -> str:
    if sys.stdin.isatty():
        return getpass(f"Key for {provider} (not shown): ")
    return sys.stdin.readline().strip()


@command.command(help="Remove a key or login by its number, id or label.")
@click.argument("provider")
@click.argument("which")
@text_output(with_accounts)
async def remove(accounts: Accounts, provider: str, which: str) -> str:
    row = await accounts.remove(provider, which)
    place, _, name = row.source.partition(":")
    if place in ("env", "config"):
        where = "variable" if place == "env" else "setting"
        return f"{row.provider} no longer uses {name}; the {where} itself is unchanged"
    if place in ("manual", "device_code", "hermes_pkce"):
        return f"removed {row.label or row.id} from {row.provider}"
    return f"{row.provider} no longer uses the login of {row.label}; it is unchanged"


@command.command(help="Use the paused keys of a provider again at once.")
@click.argument("provider")
@text_output(with_accounts)
async def reset(accounts: Accounts, provider: str) -> str:
    count = await accounts.reset(provider)
    return f"{count} of the keys of {provider} were paused; all can be used again"


@command.command("logout", help="Log out of a provider, like `hermes logout`.")
@click.argument("provider", required=False, default="")
@text_output(with_accounts)
async def logout_(accounts: Accounts, provider: str) -> list[str]:
    return await log_out(accounts, provider)
