"""Classifies network addresses and host names: public, private, metadata or unusable."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal

from hermes.codec.values import Value

# `metadata` and `never` are always refused.
Reach = Literal["global", "private", "metadata", "never"]


class AddressKind(Value):
    """`odd` is an IPv6 address that embeds an IPv4 one."""

    reach: Reach
    words: str
    odd: bool = False


GLOBAL = AddressKind(reach="global", words="a public address")
METADATA = AddressKind(reach="metadata", words="a cloud metadata service")

_V4: tuple[tuple[str, Reach, str], ...] = (
    ("169.254.0.0/16", "metadata", "link-local, where clouds keep their metadata service"),
    ("100.100.100.200/32", "metadata", METADATA.words),
    ("168.63.129.16/32", "metadata", METADATA.words),
    ("192.0.0.192/32", "metadata", METADATA.words),
    ("127.0.0.0/8", "private", "this machine itself"),
    ("10.0.0.0/8", "private", "a private network"),
    ("172.16.0.0/12", "private", "a private network"),
    ("192.168.0.0/16", "private", "a private network"),
    ("100.64.0.0/10", "private", "a carrier's or overlay network"),
    ("0.0.0.0/8", "never", "unspecified"),
    ("192.0.0.0/24", "never", "reserved"),
    ("192.0.2.0/24", "never", "reserved for documentation"),
    ("192.88.99.0/24", "never", "a 6to4 relay"),
    ("198.18.0.0/15", "never", "reserved for benchmarks"),
    ("198.51.100.0/24", "never", "reserved for documentation"),
    ("203.0.113.0/24", "never", "reserved for documentation"),
    ("224.0.0.0/4", "never", "multicast"),
    ("240.0.0.0/4", "never", "reserved or broadcast"),
)
_V6: tuple[tuple[str, Reach, str], ...] = (
    ("fd00:ec2::/32", "metadata", METADATA.words),
    ("fd20:ce::254/128", "metadata", METADATA.words),
    ("fd00:42::42/128", "metadata", METADATA.words),
    ("fd00:a9fe:a9fe::/48", "metadata", METADATA.words),
    ("fe80::a9fe:a9fe/128", "metadata", METADATA.words),
    ("::1/128", "private", "this machine itself"),
    ("fc00::/7", "private", "a private network"),
    ("fec0::/10", "private", "a private network"),
    ("::/128", "never", "unspecified"),
    ("fe80::/10", "never", "link-local"),
    ("ff00::/8", "never", "multicast"),
    ("64:ff9b:1::/48", "never", "a translation of a local network"),
    ("100::/64", "never", "a hole without a bottom"),
    ("2001::/23", "never", "reserved for protocols"),
    ("2001:db8::/32", "never", "reserved for documentation"),
    ("2002::/16", "never", "a 6to4 tunnel"),
    ("3fff::/20", "never", "reserved for documentation"),
)
_V4_NETWORKS = tuple((IPv4Network(net), AddressKind(reach=r, words=w)) for net, r, w in _V4)
_V6_NETWORKS = tuple((IPv6Network(net), AddressKind(reach=r, words=w)) for net, r, w in _V6)
_V6_GLOBAL = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def address_kind(text: str) -> AddressKind | None:
    """Classifies an address in canonical form; None if it is not an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return _v4(address)
    return _v6(address)


def _v4(address: IPv4Address) -> AddressKind:
    return next((kind for network, kind in _V4_NETWORKS if address in network), GLOBAL)


def _v6(address: IPv6Address) -> AddressKind:
    if address.scope_id:
        return AddressKind(reach="never", words="bound to one network card", odd=True)
    inner = _inner(address)
    if any(_v4(each).reach == "metadata" for each in inner):
        return AddressKind(reach="metadata", words=METADATA.words, odd=True)
    if inner and address in _NAT64:
        # DNS64 networks return these for every host that only has IPv4.
        return AddressKind(reach=_v4(inner[0]).reach, words=_v4(inner[0]).words, odd=True)
    for network, kind in _V6_NETWORKS:
        if address in network:
            return kind
    if inner:
        found = _v4(inner[0])
        reach = "never" if found.reach == "global" else found.reach
        return AddressKind(reach=reach, words=f"another spelling of {inner[0]}", odd=True)
    return GLOBAL if address in _V6_GLOBAL else AddressKind(reach="never", words="reserved")


def _inner(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses embedded in an IPv6 address."""
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


_METADATA = frozenset(
    """
    metadata metadata.google.internal metadata.goog metadata.google instance-data
    instance-data.ec2.internal metadata.ec2.internal metadata.azure.internal metadata.azure.com
    metadata.packet.net metadata.platformequinix.com metadata.tencentyun.com
    metadata.oraclecloud.com metadata.nic.ibm.com metadata.digitalocean.com metadata.aliyun.com
    metadata.huaweicloud.com
    """.split()
)
_LOCAL = frozenset(
    """
    localhost localhost.localdomain localhost6 localhost6.localdomain6 ip6-localhost ip6-loopback
    broadcasthost host.docker.internal gateway.docker.internal kubernetes.docker.internal
    host.containers.internal host.lima.internal
    """.split()
)
_LOCAL_ENDS = (
    ".localhost",
    ".localdomain",
    ".local",
    ".internal",
    ".intranet",
    ".private",
    ".corp",
    ".home",
    ".lan",
    ".home.arpa",
    ".in-addr.arpa",
    ".ip6.arpa",
    ".docker",
    ".svc",
    ".consul",
    ".onion",
    ".invalid",
)
_HERE = AddressKind(reach="private", words="a name of this machine or its own network")


def name_kind(name: str) -> AddressKind | None:
    """Classifies a host name; None if only its addresses can tell."""
    if name in _METADATA or name.endswith((".metadata.google.internal", ".metadata.goog")):
        return METADATA
    if name in _LOCAL or name.endswith(_LOCAL_ENDS) or "." not in name:
        return _HERE
    return None
