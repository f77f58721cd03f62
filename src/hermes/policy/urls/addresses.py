"""Classifies network addresses and host names: public, private, metadata or unusable."""

from __future__ import annotations

from functools import cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from hermes.codec.values import Value
from hermes.policy.patterns import Reach, vocabulary, word_list, word_set


class AddressKind(Value):
    """What kind of IP address a host has. `odd` is an IPv6 address that embeds an IPv4 one."""

    reach: Reach
    description: str
    odd: bool = False


GLOBAL = AddressKind(reach="global", description="a public address")
METADATA = AddressKind(reach="metadata", description="a cloud metadata service")

_V6_GLOBAL = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def address_kind(text: str) -> AddressKind | None:
    """Classify an address in canonical form; None if it is not an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return _v4(address)
    return _v6(address)


@cache
def _networks() -> tuple[tuple[IPv4Network | IPv6Network, AddressKind], ...]:
    """Return the networks that are not public, narrow ones first."""
    return tuple(
        (ip_network(each.network), AddressKind(reach=each.reach, description=each.words))
        for each in vocabulary().networks
    )


def _find_network(address: IPv4Address | IPv6Address) -> AddressKind | None:
    return next((kind for network, kind in _networks() if address in network), None)


def _v4(address: IPv4Address) -> AddressKind:
    return _find_network(address) or GLOBAL


def _v6(address: IPv6Address) -> AddressKind:
    if address.scope_id:
        return AddressKind(reach="never", description="bound to one network interface", odd=True)
    inner = _inner(address)
    if any(_v4(each).reach == "metadata" for each in inner):
        return AddressKind(reach="metadata", description=METADATA.description, odd=True)
    if inner and address in _NAT64:
        # DNS64 networks return these for every host that only has IPv4.
        return AddressKind(
            reach=_v4(inner[0]).reach, description=_v4(inner[0]).description, odd=True
        )
    if kind := _find_network(address):
        return kind
    if inner:
        found = _v4(inner[0])
        reach = "never" if found.reach == "global" else found.reach
        return AddressKind(reach=reach, description=f"another spelling of {inner[0]}", odd=True)
    return (
        GLOBAL
        if address in _V6_GLOBAL
        else AddressKind(reach="never", description="a reserved address")
    )


def _inner(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses embedded in an IPv6 address."""
    number = int(address)
    low = IPv4Address(number & 0xFFFFFFFF)
    if any(address in network for network in (_MAPPED, _TRANSLATED, _NAT64)):
        return [low]
    if address in _COMPATIBLE and number > 1:
        return [low]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return [address.teredo[1], address.teredo[0]]
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return [low]
    return []


_HERE = AddressKind(reach="private", description="a name of this machine or its own network")


def name_kind(name: str) -> AddressKind | None:
    """Classify a host name; None if only its addresses can tell."""
    if name in word_set("metadata_hosts") or name.endswith(
        (".metadata.google.internal", ".metadata.goog")
    ):
        return METADATA
    if (
        name in word_set("local_hosts")
        or name.endswith(word_list("local_domains"))
        or "." not in name
    ):
        return _HERE
    return None
