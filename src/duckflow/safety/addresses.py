"""Addresses on the network: which ones are public, and which ones a name leads to."""

import asyncio
import ipaddress
import socket

_GLOBAL = ("2000::/3",)
_NAT64 = ("64:ff9b::/96",)
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_SPECIAL = (
    # 168.63.129.16 is the host of a virtual machine in Azure, which only that machine reaches.
    *("192.0.0.0/24", "192.88.99.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24"),
    *("168.63.129.16/32", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
)
"""Networks that are not public, although Python or the address plan counts them as global."""

_NOWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotPublic(OSError):
    """Raised if a name leads to a private network or to this machine."""


async def resolve(host: str, port: int, *, private: bool) -> list[str]:
    """Return the IP addresses of a host. Without `private`, raise NotPublic if one is private or our own."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    numbers = [str(one[4][0]) for one in found]
    if not private and not all(is_public(one) and not is_own(one) for one in numbers):
        raise NotPublic(f"{host} is on a private network")
    return numbers


def is_public(number: str) -> bool:
    """Return True if an IP address is public, and so is the IPv4 address that it may contain."""
    place = ipaddress.ip_address(number.partition("%")[0])
    if isinstance(place, ipaddress.IPv4Address):
        return place.is_global and not place.is_multicast and not _in(place, _SPECIAL)
    inner = _inner_address(place)
    if inner is not None and not is_public(str(inner)):
        return False
    return _in(place, _NAT64) or (_in(place, _GLOBAL) and place.is_global and not _in(place, _SPECIAL))


def is_own(number: str) -> bool:
    """Return True if an IP address is one of this machine, whose services may trust it. Nothing is sent."""
    family = socket.AF_INET6 if ":" in number else socket.AF_INET
    # Some systems let programs bind any address, even one reserved for documentation. Then nothing is known.
    return _can_bind(family, number) and not _can_bind(family, _NOWHERE[family])


def _can_bind(family: int, number: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as tried:
            tried.bind((number, 0))
    except OSError:
        return False
    return True


def _in(place: _Address, networks: tuple[str, ...]) -> bool:
    return any(place in ipaddress.ip_network(network) for network in networks)


def _inner_address(place: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address leads to by NAT64 or ISATAP."""
    last, above = int(place) & 0xFFFFFFFF, int(place) >> 32 & 0xFFFFFFFF
    return ipaddress.IPv4Address(last) if _in(place, _NAT64) or above in _ISATAP else None
