"""What commands print and ask: lines or JSON, tables, warnings, confirmations."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.codec.json import encode
from hermes.codec.values import JsonValue, Value
from hermes.commands.formatting import one_line
from hermes.core.errors import UsageError
from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.command_context import apply_style, run, warn_about_faults
from hermes.surfaces.cli.options import GlobalOption

if TYPE_CHECKING:
    from hermes.app.app import App


def click_option(option: GlobalOption) -> click.Option:
    kinds: dict[str, dict[str, Any]] = {
        "text": {},
        "flag": {"is_flag": True},
        "count": {"type": click.IntRange(min=1)},
        "path": {"type": click.Path(dir_okay=False)},
        "optional": {"is_flag": False, "flag_value": ""},
    }
    return click.Option(
        (*option.names, option.key),
        help=option.words,
        metavar=option.metavar,
        **kinds[option.kind],
    )


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, otherwise: str = "Nothing was changed.") -> None:
    """Return if the user agrees; any other answer ends the command. Do not call it inside an event
    loop, which would swallow Ctrl+C while the prompt waits."""
    _require_terminal(question)
    if not click.confirm(question, err=True):
        click.echo(otherwise, err=True)
        raise click.exceptions.Exit(1)


def confirm_by_name(warning: str, name: str) -> None:
    """For what cannot be undone: the user types the name of what is removed."""
    _require_terminal(warning)
    if click.prompt(f"{warning} Type {name!r} to go on", default="", err=True) != name:
        click.echo("Nothing was removed.", err=True)
        raise click.exceptions.Exit(1)


def _require_terminal(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to answer in; add --yes.")


T = TypeVar("T")
# Opens what a command works on and awaits a function of it.
Opener = Callable[[click.Context, Callable[[Any], Coroutine[Any, Any, Any]]], Any]
Callback = Callable[..., int]
LONGEST = 400

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Output:
    """The result of a command: `lines` for people, `data` for `--json`, and the exit code."""

    def __init__(
        self, data: object, lines: str | Iterable[str] = (), *, code: int | bool = 0
    ) -> None:
        self.data = data
        self.lines = (lines,) if isinstance(lines, str) else lines
        self.code = int(code)


def json_output(opener: Opener | None = None) -> Callable[[Callable[..., Any]], Callback]:
    """For a command with `--json`; its function returns an Output.

    The opener passes the first argument of an async function, such as the App of `with_app`.
    Without one, the function is synchronous and its first argument is the click context.
    """
    return lambda function: as_json_option(_callback(function, opener))


def text_output(opener: Opener | None = None) -> Callable[[Callable[..., Any]], Callback]:
    """Like `json_output`, without `--json`; the function returns its text, or lines of it."""
    return lambda function: _callback(function, opener)


def _callback(function: Callable[..., Any], opener: Opener | None) -> Callback:
    @click.pass_context
    @functools.wraps(function)
    def callback(ctx: click.Context, /, as_json: bool = False, **given: Any) -> int:
        if opener is None:
            result = function(ctx, **given)
        else:
            result = opener(ctx, lambda subject: function(subject, **given))
        return print_output(result, as_json=as_json)

    return callback


def print_output(result: Output | str | Iterable[str] | None, *, as_json: bool) -> int:
    """The exit code."""
    if not isinstance(result, Output):
        result = Output(None, result or ())
    if as_json:
        print_json(columns(result.data))
    else:
        for line in result.lines:
            print(line)
    return result.code


def with_app(ctx: click.Context, work: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    """Await `work` with the App that the global options describe."""
    from hermes.app.start import start

    async def whole() -> T:
        async with start(ctx.find_root().obj or {}) as app:
            warn_about_faults(ctx, app.run.config.diagnostics)
            return await work(app)

    return run(whole())


def print_json(value: object) -> None:
    """Always in UTF-8, whatever encoding the terminal uses."""
    sys.stdout.flush()
    sys.stdout.buffer.write(encode(value) + b"\n")


def columns(value: object) -> JsonValue:
    """A value with all its fields, including defaults, so that scripts see the same keys in every
    row."""
    if isinstance(value, Value):
        return {name: columns(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: columns(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [columns(item) for item in value]
    return value


def fields(value: Value) -> dict[str, Any]:
    """The columns of one value, for commands that add some."""
    return {name: columns(getattr(value, name)) for name in value.__struct_fields__}


def warn(text: str) -> None:
    print(f"{apply_style('warning:', 'warn', sys.stderr)} {text}", file=sys.stderr)


def table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Columns cut to their widths, with a rule below the first row. The last column is not cut."""
    for number, row in enumerate(rows):
        fitted = [_fit(cell, width) for cell, width in zip(row, widths, strict=False)]
        rest = [one_line(cell) for cell in row[len(widths) :]]
        yield "  ".join((*fitted, *rest)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in (*widths, *map(len, rest)))


def page_lines(page: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Sections of named lines. An empty section says so."""
    for number, (section, lines) in enumerate(page.items()):
        yield ("\n" if number else "") + apply_style(section, "bold")
        width = max(map(len, lines), default=0)
        for name, words in lines.items():
            yield f"  {name:<{width}}  {one_line(words, LONGEST)}".rstrip()
        if not lines:
            yield apply_style("  none", "dim")


def ago(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def format_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _fit(text: str, width: int) -> str:
    """Exactly that many terminal cells."""
    plain = one_line(text)
    if cells(plain) > width:
        while cells(plain) > width - 1:
            plain = plain[:-1]
        plain += "…"
    return plain + " " * (width - cells(plain))
