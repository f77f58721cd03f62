"""`hermes policy redact` and `hermes policy scan`: JSON lines in, JSON lines out."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from hermes.codec.values import JsonObject
from hermes.policy.inquiries import answer_redact, answer_scan
from hermes.surfaces.cli.output import print_json
from hermes.surfaces.cli.place import config_of

always_json = click.option("--json", "as_json", is_flag=True, help="The default here.")


def answer_lines(answer: Callable[[bytes], JsonObject]) -> None:
    """Each answer is flushed, so that a script can wait for it."""
    for line in sys.stdin.buffer:
        if line.strip():
            print_json(answer(line))
            sys.stdout.flush()


@click.command(
    help='Answer JSON lines such as {"text":"KEY=…","channel":"model"} with the redacted text and '
    "the kinds of secrets that it contained."
)
@always_json
@click.pass_context
def redact(ctx: click.Context, as_json: bool) -> None:
    config = config_of(ctx)
    answer_lines(lambda line: answer_redact(config, line))


@click.command(
    help='Answer JSON lines such as {"kind":"memory","text":"…"} with a verdict and findings. '
    'Kinds: memory, skill (may include "files"), context, tool_description.'
)
@always_json
def scan(as_json: bool) -> None:
    answer_lines(answer_scan)
