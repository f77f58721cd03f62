"""`hermes policy redact` and `hermes policy scan`: dialogues in lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.policy.inquiries import redacted, scanned
from hermes.surfaces.cli.place import config_of


def converse(answer: Callable[[bytes], JsonObject]) -> None:
    """One line out for each line in, at once, so that a script can wait for it."""
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.buffer.write(encode(answer(line)) + b"\n")
            sys.stdout.buffer.flush()


@click.command(
    help='Answer JSON lines such as {"text":"KEY=…","channel":"model"} with the text that would '
    "leave, and the kinds of secrets that were in it."
)
@click.option("--json", "as_json", is_flag=True, help="Always the case here.")
@click.pass_context
def redact(ctx: click.Context, as_json: bool) -> None:
    config = config_of(ctx)
    converse(lambda line: redacted(config, line))


@click.command(
    help='Answer JSON lines such as {"kind":"memory","text":"…"} with a verdict and findings. '
    'Kinds: memory, skill (may bring "files"), context, tool_description.'
)
@click.option("--json", "as_json", is_flag=True, help="Always the case here.")
def scan(as_json: bool) -> None:
    converse(scanned)
