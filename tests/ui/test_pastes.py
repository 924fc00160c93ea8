"""M1: long pastes are folded on the input line, and pictures can be pasted."""

import os
from pathlib import Path

import pytest

from duckflow.app.places import open_log
from duckflow.domain.events import UserMessage
from duckflow.i18n.catalogue import set_language
from duckflow.store.sessions import Sessions
from duckflow.ui.input.pastes import Pastes, read_clipboard
from fakes.conversation import conversation, ready
from fakes.engine import decision

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
LONG = "\n".join(f"line {number}" for number in range(30))


@pytest.mark.parametrize("language", ["en", "ja"])
def test_M1_a_long_paste_has_a_short_name_and_a_short_one_stays(language: str):
    set_language(language)
    pastes = Pastes()
    assert pastes.fold("one\r\ntwo") == "one\ntwo"
    names = [pastes.fold(LONG), pastes.fold("x" * 2000)]
    assert len(set(names)) == 2
    assert all(len(name) < 40 for name in names)
    assert pastes.unfold(f"Look: {names[0]} and {names[1]}") == f"Look: {LONG} and {'x' * 2000}"


def test_M1_the_path_of_a_picture_becomes_a_picture(tmp_path: Path):
    place = tmp_path / "my shot.png"
    place.write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("x")
    pastes = Pastes()
    escaped = str(place).replace(" ", "\\ ")
    for pasted in (str(place), f"'{place}' ", escaped, f"file://{str(place).replace(' ', '%20')}\n"):
        assert pastes.pictures(f"see {pastes.fold(pasted)}") == (PNG,), pasted
    for pasted in (str(tmp_path / "notes.txt"), str(tmp_path / "gone.png"), "shot.png", f"{place}\nand more"):
        assert pastes.fold(pasted) == pasted


async def test_M1_the_clipboard_is_read_by_a_program_outside_the_folder(tmp_path: Path, folder: Path):
    programs = tmp_path / "bin"
    for place, content in ((programs, "a picture"), (folder, "not this")):
        place.mkdir(exist_ok=True)
        (place / "xclip").write_text(f"#!/bin/sh\nprintf '{content}'\n")
        (place / "xclip").chmod(0o755)
    path = f"{folder}{os.pathsep}{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    assert await read_clipboard(folder, {"PATH": path}) == b"a picture"
    assert await read_clipboard(folder, {"PATH": str(folder)}) is None


def test_M1_what_was_pasted_is_sent_whole_and_with_its_picture(folder: Path):
    picture = folder.parent / "shot.png"
    picture.write_bytes(PNG)
    with conversation(folder, decision("Seen."), decision("Read.")) as terminal:
        ready(terminal)
        terminal.type(f"\x1b[200~{LONG}\x1b[201~")
        terminal.wait_for("[Pasted text 1: 30 lines]")
        terminal.type(f"\x1b[200~{picture}\x1b[201~\r")
        terminal.wait_for("Seen.")
        assert "18 more lines" in terminal.text
        terminal.type("/quit\r")
        terminal.wait_for_end()
    log = open_log()
    (session,) = Sessions(log.database).listed()
    (said,) = (one.event for one in log.load(session.id) if isinstance(one.event, UserMessage))
    log.close()
    assert said.text.startswith(LONG)
    assert [one.media for one in said.pictures] == ["image/png"]
