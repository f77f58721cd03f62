"""What commands print and ask: lines or JSON, tables, confirmations, selections."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import click

from hermes.codec.json import encode
from hermes.codec.values import JsonValue, Value
from hermes.commands.formatting import one_line
from hermes.core.errors import UsageError
from hermes.surfaces.cli.chat.cells import cut, pad
from hermes.surfaces.cli.command_context import Opener, PickerRow, apply_style
from hermes.surfaces.cli.options import GlobalOption

F = TypeVar("F", bound=Callable[..., Any])


def click_option(option: GlobalOption) -> click.Option:
    kinds: dict[str, dict[str, Any]] = {
        "text": {},
        "flag": {"is_flag": True},
        "count": {"type": click.IntRange(min=1)},
        "path": {"type": click.Path(dir_okay=False)},
        "optional": {"is_flag": False, "flag_value": ""},
    }
    return click.Option(
        (*option.names.split(), option.key),
        help=option.help,
        metavar=option.metavar,
        **kinds[option.kind],
    )


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def limit_option(*names: str, default: int) -> Callable[[F], F]:
    return click.option(
        *names,
        "--limit",
        metavar="N",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        help="Show at most N rows.",
    )


dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would happen, without changing anything."
)


def confirm(question: str, *, yes: bool = False, otherwise: str = "Nothing was changed.") -> None:
    """Return if the user agrees, or with `yes`; any other answer ends the command. Do not call it
    inside an event loop, which would swallow Ctrl+C while the prompt waits."""
    if not yes:
        _require_terminal(question)
        if not click.confirm(question, err=True):
            _end(otherwise)


def confirm_by_name(warning: str, name: str, *, yes: bool) -> None:
    """Ask the user to type the name of what is removed, because this cannot be undone."""
    if not yes:
        _require_terminal(warning)
        if click.prompt(f"{warning} Type {name!r} to continue", default="", err=True) != name:
            _end("Nothing was removed.")


def _require_terminal(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Without a terminal, confirm with --yes.")


def _end(message: str) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(1)


def pick(
    title: str,
    rows: Sequence[PickerRow],
    *,
    chosen: str = "",
    as_typed: Callable[[str], PickerRow] | None = None,
) -> str | None:
    """The value of the row that the user selects; None when the user cancels. `as_typed` makes a
    row of the typed text when no row has that name."""
    # Loads a large library.
    from hermes.surfaces.cli.picker import Picker

    return asyncio.run(Picker(title, rows, chosen=chosen, as_typed=as_typed).run())


LONGEST = 400


class Output:
    """The result of a command: `lines` for people, `data` for `--json`, and the exit code. With
    `json_lines`, each item of `data` is a line of its own."""

    def __init__(
        self,
        data: Any,
        lines: str | Iterable[str] = (),
        *,
        code: int | bool = 0,
        json_lines: bool = False,
    ) -> None:
        self.data = data
        self.lines = (lines,) if isinstance(lines, str) else lines
        self.code = int(code)
        self.json_lines = json_lines


Decorator = Callable[[Callable[..., Any]], click.Command]


def json_command(help: str, opener: Opener[Any] | None = None) -> Decorator:
    """A command with `--json`, whose function returns an Output, or None if it has printed all.

    The opener passes the first argument, such as the App of `with_app`. Without one, it is the
    click context, and the function is synchronous. Other parameters that no decorator declares are
    arguments of the command, optional if they have a default; a tuple takes any number. A parameter
    `as_json` says whether the output is JSON.
    """
    return lambda function: _command(function, help, opener, with_json=True)


def text_command(help: str, opener: Opener[Any] | None = None) -> Decorator:
    """Like `json_command`, without `--json`; the function returns its text, or lines of it."""
    return lambda function: _command(function, help, opener, with_json=False)


class CommandGroup(click.Group):
    """A group whose commands are declared with `json` and `text`, like `json_command` and
    `text_command`. Called without a command, it runs its command `default`, if there is one."""

    def __init__(self, name: str | None = None, *, default: str = "", **attrs: Any) -> None:
        if default:
            attrs |= {"callback": self._run_default, "invoke_without_command": True}
        super().__init__(name, **attrs)
        self._default = default

    def json(
        self, help: str, opener: Opener[Any] | None = None, *, name: str | None = None
    ) -> Decorator:
        return lambda function: self._add(_command(function, help, opener, with_json=True), name)

    def text(
        self, help: str, opener: Opener[Any] | None = None, *, name: str | None = None
    ) -> Decorator:
        return lambda function: self._add(_command(function, help, opener, with_json=False), name)

    def _add(self, command: click.Command, name: str | None) -> click.Command:
        command.name = name or command.name
        self.add_command(command)
        return command

    def _run_default(self) -> None:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None:
            ctx.invoke(self.commands[self._default])


def _command(
    function: Callable[..., Any], help: str, opener: Opener[Any] | None, *, with_json: bool
) -> click.Command:
    declared: list[click.Parameter] = [*reversed(getattr(function, "__click_params__", []))]
    names = {"as_json", *(param.name for param in declared)}
    _, *parameters = inspect.signature(function).parameters.values()
    takes_format = any(each.name == "as_json" for each in parameters)

    @click.pass_context
    def callback(ctx: click.Context, /, as_json: bool = False, **arguments: Any) -> int:
        if takes_format:
            arguments["as_json"] = as_json
        if opener is None:
            result = function(ctx, **arguments)
        else:
            result = opener(ctx, lambda subject: function(subject, **arguments))
        return print_output(result, as_json=as_json)

    for each in parameters:
        if each.name not in names and each.kind is not each.VAR_KEYWORD:
            attrs: dict[str, Any] = {"required": each.default is each.empty}
            if str(each.annotation).startswith("tuple["):
                attrs["nargs"] = -1
            elif each.default is not each.empty:
                attrs["default"] = each.default
            declared.append(click.Argument([each.name], **attrs))
    if with_json:
        declared.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    # The command has the name of its function; `list_` is `list`.
    callback.__name__ = function.__name__.rstrip("_")
    return click.command(help=help, params=declared)(callback)


def print_output(result: Output | str | Iterable[str] | None, *, as_json: bool) -> int:
    """The exit code."""
    if result is None:
        return 0
    if not isinstance(result, Output):
        result = Output(None, result)
    if not as_json:
        for line in result.lines:
            print(line)
    else:
        for item in result.data if result.json_lines else (result.data,):
            print_json(columns(item))
    return result.code


def print_json(value: object) -> None:
    """Always in UTF-8, whatever encoding the terminal uses."""
    sys.stdout.flush()
    sys.stdout.buffer.write(encode(value) + b"\n")


def columns(value: object) -> JsonValue:
    """A value with all its fields, including defaults, so that scripts see the same keys in every
    row."""
    if isinstance(value, Value):
        return fields(value)
    if isinstance(value, dict):
        return {name: columns(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [columns(item) for item in value]
    return value


def fields(value: Value) -> dict[str, Any]:
    """The columns of one value, for commands that add some."""
    return {name: columns(getattr(value, name)) for name in value.__struct_fields__}


def table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Columns cut to their widths, with a rule below the first row. The last column is not cut."""
    for number, row in enumerate(rows):
        fitted = [
            pad(cut(one_line(cell), width), width) for cell, width in zip(row, widths, strict=False)
        ]
        rest = [one_line(cell) for cell in row[len(widths) :]]
        yield "  ".join((*fitted, *rest)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in (*widths, *map(len, rest)))


def page_lines(page: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Sections of named lines. An empty section says so."""
    for number, (section, lines) in enumerate(page.items()):
        yield ("\n" if number else "") + apply_style(section, "bold")
        width = max(map(len, lines), default=0)
        for name, help in lines.items():
            yield f"  {name:<{width}}  {one_line(help, LONGEST)}".rstrip()
        if not lines:
            yield apply_style("  none", "dim")
