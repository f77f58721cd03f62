"""The configured models, for commands that need no session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from hermes.config.load import Config
from hermes.config.secrets import process_environment
from hermes.core.world import World
from hermes.credentials.redaction import SecretRedactor
from hermes.models.models import Models
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.place import config_of

T = TypeVar("T")


def with_models(ctx: click.Context, work: Callable[[Models, Config], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        config, env = config_of(ctx), process_environment()
        secrecy = SecretRedactor(config, env)
        models = Models(config, World(), env=env, is_secret=secrecy.is_secret)
        models.accounts.watch_secrets(secrecy.watch)
        try:
            return await work(models, config)
        finally:
            await models.close()

    return run(whole())
