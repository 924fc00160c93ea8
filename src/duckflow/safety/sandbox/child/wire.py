"""Transfer of an order between Duckflow's processes: its length, then its text, with descriptors."""

import json
import socket
from typing import Any

_LENGTH = 4
_MOST_AT_ONCE = 1 << 16


def send(to: socket.socket, order: bytes, opened: list[int]) -> None:
    """Send an order on as it was received."""
    data = len(order).to_bytes(_LENGTH) + order
    sent = socket.send_fds(to, [data], opened)
    to.sendall(data[sent:])


def receive(source: socket.socket, most: int = 0) -> tuple[dict[str, Any] | None, bytes, list[int]]:
    """Receive an order, its text, and up to `most` descriptors. The order is None if the sender is gone."""
    data, opened, _, _ = socket.recv_fds(source, _MOST_AT_ONCE, most)
    while len(data) < _LENGTH or len(data) < _LENGTH + int.from_bytes(data[:_LENGTH]):
        more = source.recv(_MOST_AT_ONCE)
        if not more:
            return None, b"", opened
        data += more
    return json.loads(data[_LENGTH:]), data[_LENGTH:], opened
