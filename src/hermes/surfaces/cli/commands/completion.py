"""`hermes completion`: shell scripts that complete commands without starting Hermes."""

from __future__ import annotations

from collections.abc import Iterator

import click

# Command path: (subcommands, options).
Table = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]

HOW = {
    "bash": "hermes completion bash > ~/.local/share/bash-completion/completions/hermes",
    "zsh": "hermes completion zsh > ~/.zfunc/_hermes  (a folder of your fpath)",
    "fish": "hermes completion fish > ~/.config/fish/completions/hermes.fish",
}


@click.command(help="Print a script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(sorted(HOW)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    table = dict(rows(ctx.find_root().command, ""))
    write = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[shell]
    click.echo(f"# To use it: {HOW[shell]}\n{write(table)}", nl=False)


def rows(
    command: click.Command, path: str
) -> Iterator[tuple[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    options = tuple(
        name for param in command.params if isinstance(param, click.Option) for name in param.opts
    )
    below: tuple[str, ...] = ()
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        below = tuple(command.list_commands(ctx))
        for name in below:
            found = command.get_command(ctx, name)
            assert found is not None
            yield from rows(found, f"{path} {name}".strip())
    yield path, (below, (*options, "--help"))


# The part that bash and zsh share; `words` are the words before the cursor.
SCRIPT = """\
_hermes() {{
    local word here="" found=""
    for word in "{words}"; do
        case "${{here:+$here }}$word" in
            {paths}) here="${{here:+$here }}$word" ;;
        esac
    done
    case "$here" in
{cases}    esac
    {reply}
}}
"""


def _script(table: Table, words: str, reply: str) -> str:
    paths = "|".join(f'"{path}"' for path in sorted(table) if path)
    cases = "".join(
        f'        "{path}") found="{" ".join((*below, *options))}" ;;\n'
        for path, (below, options) in sorted(table.items())
    )
    return SCRIPT.format(words=words, paths=paths, cases=cases, reply=reply)


def bash_script(table: Table) -> str:
    reply = 'COMPREPLY=($(compgen -W "$found" -- "${COMP_WORDS[COMP_CWORD]}"))'
    script = _script(table, "${COMP_WORDS[@]:1:COMP_CWORD-1}", reply)
    return f"{script}complete -o default -F _hermes hermes\n"


def zsh_script(table: Table) -> str:
    script = _script(table, "${(@)words[2,CURRENT-1]}", "compadd -- ${=found}")
    return f"#compdef hermes\n{script}compdef _hermes hermes\n"


def fish_script(table: Table) -> str:
    lines = ["complete -c hermes -f -n __fish_use_subcommand"]
    for path, (below, options) in sorted(table.items()):
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split())
        when = f"'{seen}'" if seen else "__fish_use_subcommand"
        if below:
            lines.append(f"complete -c hermes -n {when} -a '{' '.join(below)}'")
        for name in options:
            kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            lines.append(f"complete -c hermes -n {when} {kind}")
    return "\n".join(lines) + "\n"
