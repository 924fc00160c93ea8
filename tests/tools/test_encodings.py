"""Files keep their encoding, byte by byte (L9)."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.safety.files.encoding import NAMES, EncodedText, decode, encode
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.files.changing import EditFile, propose_write
from duckflow.tools.toolset import file_tools
from fakes.access import access_to

POEM = "# 設定ファイル\n名前 = 'ダック'\n# カタカナとひらがな、漢字\nprint(名前)\n"
CODECS = ("utf-8", "utf-16-le", "utf-16-be", "cp932", "euc_jp", "iso2022_jp_ext")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


async def run_tool(workspace, operation, **args):
    tool, parsed = Catalogue(file_tools(None)).validate(Action(operation=operation, args=args))
    return await tool.run(parsed, access_to(workspace))


def written(text: str, codec: str) -> bytes:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(codec, b"")
    return mark + text.encode(codec)


async def test_L9_an_edit_changes_one_line_and_no_other_byte(workspace):
    failed = {}
    for codec in CODECS:
        for ends in ("\n", "\r\n"):
            before = written(POEM.replace("\n", ends), codec)
            workspace.write_bytes("a.py", before)
            edits = [{"find": "print(名前)", "replace": "print(名前, '様')"}]
            await run_tool(workspace, "file_ops.edit_file", path="a.py", edits=edits)
            after = workspace.read_bytes("a.py")
            wanted = written(POEM.replace("print(名前)", "print(名前, '様')").replace("\n", ends), codec)
            if after != wanted:
                failed[codec, ends] = after
    assert not failed


async def test_L9_a_whole_new_content_keeps_the_encoding_and_reading_says_which(workspace):
    for codec in CODECS:
        workspace.write_bytes("a.txt", written(POEM, codec))
        shown = await run_tool(workspace, "file_ops.read_file", path="a.txt")
        assert "名前 = 'ダック'" in shown.text
        assert (f"{NAMES[codec]}, kept on writing" in shown.text) == (codec != "utf-8")
        await run_tool(workspace, "file_ops.write_file", path="a.txt", content="日本語だけ\n")
        assert workspace.read_bytes("a.txt") == written("日本語だけ\n", codec)


async def test_L9_what_the_encoding_does_not_have_is_an_error_that_says_so(workspace):
    for codec in ("cp932", "euc_jp"):
        before = written(POEM, codec)
        workspace.write_bytes("a.py", before)
        with pytest.raises(ToolError, match=rf"is {NAMES[codec]}, which has no '🦆' \(U\+1F986, line 2 "):
            await run_tool(workspace, "file_ops.write_file", path="a.py", content="# あ\n# 🦆\n")
        assert workspace.read_bytes("a.py") == before


async def test_L9_a_lost_character_is_never_written_into_a_file_that_had_none(workspace):
    workspace.write_bytes("a.txt", "名前\n".encode())
    with pytest.raises(ToolError, match="U\\+FFFD"):
        await run_tool(workspace, "file_ops.write_file", path="a.txt", content="名\ufffd\n")
    assert workspace.read_text("a.txt") == "名前\n"
    workspace.write_bytes("b.txt", "名\ufffd\n".encode())
    await run_tool(workspace, "file_ops.write_file", path="b.txt", content="名\ufffd前\n")
    assert workspace.read_text("b.txt") == "名\ufffd前\n"


def test_L9_a_wave_dash_is_the_same_sign_whichever_of_its_two_numbers_a_model_writes():
    assert encode("a", "1〜2", "cp932") == encode("a", "1～2", "cp932") == b"1\x81\x602"
    assert encode("a", "1〜2", "euc_jp") == encode("a", "1～2", "euc_jp") == b"1\xa1\xc12"


def test_L9_characters_with_two_forms_keep_the_one_they_have():
    """NEC's 0x8790 and the standard's 0x81E0 are one character; a line nobody touched keeps its bytes."""
    data = b"# \x87\x90 \x82\xa0\n# \x81\xe0 \x82\xa2\nx = 1\n"
    file = decode("a.py", data)
    assert file.codec == "cp932"
    assert file.with_text("a.py", file.text.replace("x = 1", "x = 2")) == data.replace(b"x = 1", b"x = 2")


def test_L9_what_is_no_text_we_can_keep_is_named():
    refused = {
        b"\xff\xfe\0\0a\0\0\0": "UTF-32",
        b"a\0b": "binary file of 3 bytes",
        b"\x1b$BF|\nK\\\x1b(B\n": "ISO-2022-JP",
        "café crème".encode("latin-1"): "single-byte encoding such as Latin-1",
        codecs.BOM_UTF16_LE + b"a\0b": "damaged at byte 4",
    }
    failed = {}
    for data, reason in refused.items():
        try:
            said = decode("a", data).text
        except ToolError as error:
            said = str(error)
        if reason not in said:
            failed[data] = said
    assert not failed


JAPANESE = "あいうえおかがさざアイウエオーカ漢字設定名前東京語、。「」abcXYZ012 =()'\n"
LINE = st.text(st.sampled_from(JAPANESE.replace("\n", "")), max_size=20)


def test_L9_newer_characters_of_euc_jp_are_read_and_kept():
    """Row 13 and the third level are in no EUC-JP of the standard library, but in many files."""
    before = "# ①と俱\nx = 1\n".encode("euc_jis_2004")
    file = decode("a.py", before)
    assert (file.codec, NAMES[file.codec]) == ("euc_jis_2004", "EUC-JP")
    assert file.with_text("a.py", file.text.replace("1", "2")) == before.replace(b"x = 1", b"x = 2")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(LINE, st.sampled_from(("\n", "\r\n", "\r"))), min_size=1, max_size=8),
    st.integers(0, 7),
    LINE,
    st.sampled_from((*CODECS, "utf-8-sig", "euc_jis_2004")),
)
def test_L9_random_edits_differ_in_their_line_only(shared_workspace, lines, place, new, codec):
    """With line ends of all kinds in one file, through the tool's own plan."""
    first = "# ①これは設定です\n" if codec == "euc_jis_2004" else "# これは設定です\n"
    at = place % len(lines)
    parts = [(f"{number}番 {line}", end) for number, (line, end) in enumerate(lines)]
    before = first + "".join(line + end for line, end in parts)
    shared_workspace.write_bytes("a", written(before, codec))
    wanted = "".join((new if number == at else line) + end for number, (line, end) in enumerate(parts))
    edit = EditFile.model_validate({"path": "a", "edits": [{"find": parts[at][0], "replace": new}]})
    assert propose_write(edit, shared_workspace).write.data == written(first + wanted, codec)


@pytest.fixture(scope="module")
def shared_workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("random"))


def test_L9_a_new_file_is_utf_8():
    assert EncodedText("").with_text("a", "日本") == "日本".encode()
