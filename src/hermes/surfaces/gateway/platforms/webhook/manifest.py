"""Webhooks as `hermes gateway setup` shows them, without their code."""

from __future__ import annotations

from hermes.surfaces.gateway.platform import Abilities, Manifest, SettingField

MANIFEST = Manifest(
    name="webhook",
    title="Webhooks",
    adapter="hermes.surfaces.gateway.platforms.webhook.adapter:Webhook",
    abilities=Abilities(
        max_chars=60_000,
        markup="plain",
        resolution="key",
        is_trusted_transport=True,
        offers_pairing=False,
    ),
    fields=(
        SettingField(
            env="WEBHOOK_SECRET",
            label="Secret",
            help="Signs the requests of routes without a secret of their own.",
            is_secret=True,
            is_required=False,
        ),
        SettingField(
            env="WEBHOOK_PORT",
            label="Port",
            help="Where requests arrive; a proxy in front terminates TLS.",
            is_required=False,
            default="8644",
        ),
        SettingField(
            env="WEBHOOK_HOST",
            label="Address",
            help="The address to listen on.",
            is_required=False,
            default="127.0.0.1",
        ),
    ),
    steps=(
        "Set WEBHOOK_ENABLED=true.",
        "Run `hermes webhook subscribe NAME`; it prints the URL and the secret for the service.",
        "Make the port reachable for the service, behind a proxy that terminates TLS.",
    ),
    docs="platforms/webhook.md",
)
