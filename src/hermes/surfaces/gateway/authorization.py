"""Decides who may write to the bot, on whose behalf they act, and which commands they may use."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Literal

from hermes.codec.values import Value
from hermes.config.environment import TRUE_WORDS
from hermes.config.gateway_settings import PlatformOptions, split_list
from hermes.config.load import Config
from hermes.core.effects import Principal
from hermes.core.errors import ConfigError
from hermes.surfaces.gateway.access import Access
from hermes.surfaces.gateway.pairing import PairingStore
from hermes.surfaces.gateway.platform import ChatType, Inbound, Manifest, Sender

log = logging.getLogger(__name__)

ANYBODY = "*"
# Their ids are addresses or names that people write in any case.
ANY_CASE = frozenset(("email", "matrix", "slack"))
# Whoever may write may also ask who they are.
OPEN_COMMANDS = frozenset(("help", "whoami"))
# They change the gateway itself.
ADMIN_COMMANDS = frozenset(("platform", "restart", "update"))


class AccessRules(Value):
    """The settings that decide for one platform."""

    options: PlatformOptions
    ids: frozenset[str]
    owners: frozenset[str]
    roles: frozenset[str]
    group_ids: frozenset[str]
    allows_all: bool
    trusts_transport: bool
    offers_pairing: bool


class Authorization:
    """Decides by the settings and the paired people. The first rule that matches decides."""

    def __init__(
        self,
        config: Config,
        platforms: Iterable[tuple[Manifest, PlatformOptions]],
        pairing: PairingStore,
    ) -> None:
        variables = config.secrets.variables()
        self._everywhere = split_list(variables.get("GATEWAY_ALLOWED_USERS", ""))
        allow_all = variables.get("GATEWAY_ALLOW_ALL_USERS", "")
        self._allows_all = allow_all.strip().lower() in TRUE_WORDS
        self._dm_behavior = config.settings.gateway.unauthorized_dm_behavior
        self._pairing = pairing
        profile = config.home.profile
        self._program = "hermes" if profile == "default" else f"hermes -p {profile}"
        self._rules = {
            manifest.name: self._read_rules(manifest, options) for manifest, options in platforms
        }

    def _read_rules(self, manifest: Manifest, options: PlatformOptions) -> AccessRules:
        listed = options.items("allowed_users") or ()
        owners = options.items("owner") or (listed if len(listed) == 1 else ())
        ids = (*listed, *(options.items("allow_from") or ()), *self._everywhere, *owners)

        def fold(names: Iterable[str]) -> frozenset[str]:
            return frozenset(_fold(manifest.name, name) for name in names)

        has_list = bool(ids) or bool(options.items("allowed_roles"))
        behavior = options.text("unauthorized_dm_behavior") or self._dm_behavior
        return AccessRules(
            options=options,
            ids=fold(ids),
            owners=fold(owners) - {ANYBODY},
            roles=frozenset(options.items("allowed_roles") or ()),
            group_ids=fold(
                (
                    *(options.items("group_allowed_users") or ()),
                    *(options.items("group_allowed_chats") or ()),
                )
            )
            - {ANYBODY},
            allows_all=options.flag("allow_all_users"),
            trusts_transport=manifest.abilities.is_trusted_transport,
            offers_pairing=behavior == "pair"
            if behavior
            else manifest.abilities.offers_pairing and not has_list,
        )

    def decide(self, event: Inbound) -> Access:
        """The access of the sender of an event."""
        platform = event.address.platform
        rules = self._rules.get(platform)
        if rules is None:
            return Access(kind="ignore", reason="unknown platform", platform=platform)
        ids = _ids(platform, event.sender)
        principal, reason = self._known_as(rules, platform, ids, event.sender)
        if not reason:
            reason = self._admits_anybody(rules, event, ids)
        if reason:
            return Access(
                kind="allowed",
                principal=principal,
                is_admin=_is_admin(rules.options, principal, ids, platform, event.chat_type),
                reason=reason,
                platform=platform,
            )
        is_direct = event.chat_type == "dm" and not event.sender.is_bot
        kind: Literal["pair", "ignore"] = "pair" if is_direct and rules.offers_pairing else "ignore"
        return Access(kind=kind, reason="not allowed", platform=platform)

    def _known_as(
        self, rules: AccessRules, platform: str, ids: tuple[str, ...], sender: Sender
    ) -> tuple[Principal, str]:
        """The principal of a person whom the owner has named or approved, and why."""
        if not rules.owners.isdisjoint(ids):
            return "owner", "owner"
        if not rules.ids.isdisjoint(ids):
            return "member", "listed"
        if not rules.roles.isdisjoint(sender.roles):
            return "member", "role"
        try:
            if self._pairing.is_approved(platform, (sender.id, *sender.other_ids)):
                return "member", "paired"
        except ConfigError as error:
            log.error("cannot read paired people", extra={"why": str(error)})
        return "guest", ""

    def _admits_anybody(self, rules: AccessRules, event: Inbound, ids: tuple[str, ...]) -> str:
        """Why somebody who is not known may write; "" when they may not."""
        if rules.trusts_transport:
            return "transport"
        if rules.allows_all or self._allows_all or ANYBODY in rules.ids:
            return "everybody"
        chats = (event.address.chat_id, event.parent_chat_id, *ids)
        if event.chat_type != "dm" and not rules.group_ids.isdisjoint(
            _fold(event.address.platform, each) for each in chats if each
        ):
            return "group"
        return ""

    def may_run(self, access: Access, command: str, chat_type: ChatType) -> bool:
        """Whether a person may use a slash command, whose name has no slash. `help` and `whoami`
        are open to everybody who may write."""
        if access.kind != "allowed":
            return False
        if access.is_admin or command in OPEN_COMMANDS:
            return True
        if command in ADMIN_COMMANDS:
            return False
        options = self._rules[access.platform].options
        if _list_for(options, "allow_admin_from", chat_type) is None:
            return True
        allowed = _list_for(options, "user_allowed_commands", chat_type) or ()
        return command in {each.removeprefix("/") for each in allowed}

    async def pairing_text(self, event: Inbound) -> str:
        """The answer to a person who may pair; "" when they get none."""
        platform = event.address.platform
        try:
            code = await self._pairing.request(
                platform, event.sender.id, event.sender.name, event.address.chat_id
            )
        except ConfigError as error:
            log.error("cannot issue a pairing code", extra={"why": str(error)})
            return ""
        if not code:
            return ""
        return (
            f"I do not know you yet. Your pairing code is {code}; it is valid for one hour. "
            f"The owner of this bot can let you in with:\n\n"
            f"`{self._program} pairing approve {platform} {code}`"
        )


def _is_admin(
    options: PlatformOptions,
    principal: Principal,
    ids: tuple[str, ...],
    platform: str,
    chat_type: ChatType,
) -> bool:
    """The owner, and whom the list of admins names. Without a list, everybody whom the owner knows
    is one."""
    if principal == "owner":
        return True
    admins = _list_for(options, "allow_admin_from", chat_type)
    if admins is None:
        return principal == "member"
    return not {_fold(platform, each) for each in admins}.isdisjoint(ids)


def _list_for(options: PlatformOptions, key: str, chat_type: ChatType) -> tuple[str, ...] | None:
    """A list that groups may have of their own."""
    own = options.items(f"group_{key}") if chat_type != "dm" else None
    return own if own is not None else options.items(key)


def _ids(platform: str, sender: Sender) -> tuple[str, ...]:
    return tuple(_fold(platform, each) for each in (sender.id, *sender.other_ids) if each)


def _fold(platform: str, name: str) -> str:
    return name.casefold() if platform in ANY_CASE else name
