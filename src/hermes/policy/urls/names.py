"""Names of hosts that lead to no public place, whatever a resolver says about them."""

from __future__ import annotations

from hermes.policy.urls.addresses import METADATA, Kind

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
_HERE = Kind(reach="private", words="a name of this machine or its own network")


def kind_of_name(name: str) -> Kind | None:
    """None when only its addresses can tell."""
    if name in _METADATA or name.endswith((".metadata.google.internal", ".metadata.goog")):
        return METADATA
    if name in _LOCAL or name.endswith(_LOCAL_ENDS) or "." not in name:
        return _HERE
    return None
