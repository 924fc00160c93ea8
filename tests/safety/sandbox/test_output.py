"""G7, SAFETY 15: output of commands is bounded, readable and shown as it arrives."""

import time
from itertools import count

from duckflow.domain.live_updates import OutputPiece
from duckflow.safety.sandbox.output import LONGEST_PIECE, PIECES_A_SECOND, CommandOutput, LiveOutput, plain
from fakes.rows import every_row


def kept(*blocks: bytes, most_bytes: int = 1000, most_lines: int = 1000) -> str:
    output = CommandOutput(most_bytes, most_lines)
    for block in blocks:
        output.take(block)
    return output.text()


def test_short_output_is_whole():
    assert kept(b"one\n", "二\n".encode()[:2], "二\n".encode()[2:]) == "one\n二\n"
    assert kept(b"x" * 1000) == "x" * 1000


def test_long_output_keeps_head_and_tail_and_says_what_is_missing():
    lines = [f"line {n}\n".encode() for n in range(10_000)]
    text = kept(*lines, most_bytes=200)
    shown = text.splitlines()
    assert shown[0] == "line 0"
    assert shown[-1] == "line 9999"
    assert len(text) < 300
    missing = next(line for line in shown if "left out" in line)
    assert missing.startswith("… ")
    assert missing.endswith("bytes) left out …")
    total = sum(map(len, lines))
    left_out = int(missing.split("(")[1].split()[0])
    assert total - 220 < left_out < total - 180


def test_many_short_lines_are_bounded_by_their_number():
    text = kept(b"\n" * 5000, most_bytes=100_000, most_lines=100)
    assert text.count("\n") < 110
    assert "lines" in text


def test_memory_stays_bounded():
    output = CommandOutput(1000)
    for _ in range(2000):
        output.take(b"y\n" * 50_000)
    assert len(output._head) + len(output._tail) < 10_000
    assert output.text().endswith("y\n")


def test_binary_output_is_named_not_shown():
    assert kept(bytes(range(256)) * 3) == "(binary output, 768 bytes, not shown)"
    assert kept(b"a\0b\n" + b"text " * 50).startswith("ab\n")


@every_row(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("10 %\r50 %\rdone\nnext", "done\nnext"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("half\r", "half"),
        ("a\x00b\x08c\x7fd\x85e", "abcde"),
        ("right\u202eleft", "rightleft"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_nothing_acts_on_a_terminal(raw, shown):
    assert plain(raw) == shown


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_pieces_come_at_once_and_then_at_most_twenty_a_second():
    clock, pieces = Clock(), []
    live = LiveOutput(lambda piece: pieces.append(piece.text), clock)
    for number in range(1000):
        clock.now = number / 1000
        live.take(b"%d\n" % number)
    assert pieces[0] == "0\n"
    assert len(pieces) <= PIECES_A_SECOND + 1
    live.finish()
    assert "".join(pieces) == "".join(f"{n}\n" for n in range(1000))


def test_a_flood_is_shown_in_part():
    clock, pieces = Clock(), []
    live = LiveOutput(lambda piece: pieces.append(piece.text), clock)
    for _ in range(100):
        clock.now += 0.01
        live.take(b"y\n" * 100_000)
    assert max(map(len, pieces)) <= LONGEST_PIECE


def test_characters_and_sequences_torn_between_blocks_arrive_whole():
    clock, pieces = Clock(), []
    live = LiveOutput(lambda piece: pieces.append(piece.text), clock)
    for byte in "日\x1b[31m本\x1b[0m\xff".encode():
        clock.now += 1
        live.take(bytes([byte]))
    live.finish()
    assert "".join(pieces) == "日本ÿ"


async def test_G7_a_hundred_thousand_lines_stay_cheap(folder, open_shell):
    shell = await open_shell(folder, "none")
    pieces = []
    start = time.monotonic()
    result = await shell.run("seq 100000", emit=lambda piece: pieces.append(piece.text))
    took = time.monotonic() - start
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("99999\n100000\n")
    assert len(result.output) < 32_000
    assert len(pieces) <= PIECES_A_SECOND * took + 3


async def test_G7_output_is_shown_while_the_command_runs(folder, any_level, open_shell):
    shell = await open_shell(folder, any_level)
    pieces = []
    await shell.run("echo first; while [ ! -e go ]; do sleep 0.01; done; echo last", emit=_go(folder, pieces))
    assert "".join(pieces) == "first\nlast\n"


def _go(folder, pieces):
    """The command waits until its first output was seen."""

    def emit(piece):
        pieces.append(piece.text)
        (folder / "go").touch()

    return emit


def test_L9_output_cut_at_any_byte_shows_no_lost_character():
    data = ("🦆日本語のé" * 200).encode()
    shown = {size: kept(data, most_bytes=size) for size in range(40, 80)}
    assert not {size: text for size, text in shown.items() if "\ufffd" in text}
    assert "left out" in shown[40]


def test_L9_a_stream_cut_inside_a_character_at_any_byte_loses_none():
    """Output split at every byte, or into single bytes, is shown and kept the same."""
    said = "é日本🦆ｶﾞ\x1b[31m終\x1b[0m り\n"
    data, shown = said.encode(), "é日本🦆ｶﾞ終 り\n"
    cuts = [(data[:at], data[at:]) for at in range(len(data) + 1)]
    failed = {}
    for blocks in (*cuts, tuple(data[at : at + 1] for at in range(len(data)))):
        pieces: list[OutputPiece] = []
        live, output = LiveOutput(pieces.append, count().__next__), CommandOutput(500)
        for block in blocks:
            live.take(block)
            output.take(block)
        live.finish()
        came = "".join(piece.text for piece in pieces)
        if (came, output.text()) != (shown, shown):
            failed[blocks] = came, output.text()
    for size in range(10, len(data)):  # what has no room is left out, but never half of a character
        output = CommandOutput(size)
        output.take(data)
        if "\ufffd" in output.text():
            failed[size] = output.text()
    assert not failed


def test_what_is_not_shown_is_kept_whole_up_to_a_limit():
    output = CommandOutput(100, kept=1_000)
    output.take(b"short\n")
    assert output.whole() == "", "it is shown whole"
    output.take(b"".join(b"\x1b[1mline %d\x1b[0m\n" % number for number in range(20)))
    assert output.whole() == "short\n" + "".join(f"line {number}\n" for number in range(20))
    output.take(b"x" * 5_000)
    assert output.whole().startswith("short\nline 0\n")
    assert output.whole().endswith("bytes behind this were not kept …")
    unkept = CommandOutput(100)
    unkept.take(b"x" * 1_000)
    assert unkept.whole() == ""
