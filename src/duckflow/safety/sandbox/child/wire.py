"""Transfer of a launch order between Duckflow's processes: length, text, and descriptors."""

import json
import socket
from typing import Any

_LENGTH = 4
_MOST_AT_ONCE = 1 << 16


def send(to: socket.socket, order: bytes, opened: list[int]) -> None:
    """Send an order, unchanged, to the next process."""
    data = len(order).to_bytes(_LENGTH) + order
    sent = socket.send_fds(to, [data], opened)
    to.sendall(data[sent:])


def receive(source: socket.socket, most: int = 0) -> tuple[dict[str, Any] | None, bytes, list[int]]:
    """Receive an order: parsed, as bytes, and with up to `most` descriptors. None if the sender is gone."""
    data, opened, _, _ = socket.recv_fds(source, _MOST_AT_ONCE, most)
    while len(data) < _LENGTH or len(data) < _LENGTH + int.from_bytes(data[:_LENGTH]):
        more = source.recv(_MOST_AT_ONCE)
        if not more:
            return None, b"", opened
        data += more
    return json.loads(data[_LENGTH:]), data[_LENGTH:], opened
