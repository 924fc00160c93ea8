"""A real model of which only the first layers are left: same format, tokenizer and template, but quicker."""

import struct


def first_layers(whole: bytes, layers: int) -> bytes:
    """A GGUF file with this many layers of the model in `whole`. What it says makes even less sense."""
    first = whole.index(_named(b"token_embd.weight"))
    head = bytearray(whole[:first])
    (count,) = struct.unpack_from("<Q", whole, 8)
    infos, at = [], first
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", whole, at)
        name, after = whole[at + 8 : at + 8 + length], at + 8 + length
        (dimensions,) = struct.unpack_from("<I", whole, after)
        end = after + 4 + 8 * dimensions + 4
        infos.append((name, whole[at:end], *struct.unpack_from("<Q", whole, end)))
        at = end + 8
    start, places = _aligned(at), sorted(offset for *_, offset in infos)
    following = dict(zip(places, [*places[1:], len(whole) - start], strict=True))
    table, data = b"", b""
    kept = [one for one in infos if not one[0].startswith(b"blk.") or int(one[0].split(b".")[1]) < layers]
    for _, described, offset in kept:
        table += described + struct.pack("<Q", len(data))
        data += whole[start + offset : start + following[offset]]
    struct.pack_into("<Q", head, 8, len(kept))
    key = _named(b"llama.block_count")
    struct.pack_into("<I", head, head.index(key) + len(key) + 4, layers)
    told = bytes(head) + table
    return told.ljust(_aligned(len(told)), b"\0") + data


def _named(name: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name


def _aligned(at: int) -> int:
    return (at + 31) // 32 * 32
