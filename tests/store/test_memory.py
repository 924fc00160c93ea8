"""L2: texts are kept once, found by what they speak of, bounded, and the user's to change and delete."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duckflow.domain.errors import UsageError
from duckflow.domain.events import MemoryKept, Reply
from duckflow.domain.work.memory import LONGEST_MEMORY, memory_line
from duckflow.store.database.recovery import recover
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.memory import MOST_RECALLED, Memories, terms_of


class Clock:
    """A day goes by with every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(days=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock):
    log = SqliteEventLog(tmp_path / "duckflow.db", clock)
    yield log
    log.close()


@pytest.fixture
def memories(log: SqliteEventLog, clock: Clock) -> Memories:
    return Memories(log.database, clock)


def keep(log: SqliteEventLog, *texts: str, kind: str = "worked", workspace: str = "/w") -> None:
    for text in texts:
        log.append("s1", [MemoryKept(kind=kind, text=text, workspace=workspace)])


def recalled(memories: Memories, wanted: str, workspace: str = "/w", most: int = 500) -> list[str]:
    return [one.text for one in memories.recall(wanted, workspace, most)]


def test_L2_a_text_is_kept_with_the_event_that_says_so(log, memories):
    log.append("s1", [Reply(text="x"), MemoryKept(kind="failed", text="make\n test  hangs", workspace="/w")])
    (kept,) = memories.listed()
    assert (kept.kind, kept.text, kept.workspace, kept.uses, kept.used) == (
        "failed",
        "make test hangs",
        "/w",
        0,
        None,
    )


def test_L2_the_same_text_is_kept_once(log, memories):
    keep(log, "Use tabs.", "use  ＴＡＢＳ", "Use tabs")
    assert [one.text for one in memories.listed()] == ["Use tabs."]


def test_L2_what_counts_everywhere_is_not_kept_again_for_one_folder(log, memories):
    keep(log, "Use tabs.", workspace="")
    keep(log, "Use tabs.", workspace="/w")
    assert [one.workspace for one in memories.listed()] == [""]
    keep(log, "Use spaces.", workspace="/w")
    keep(log, "Use spaces.", workspace="/other")
    assert len(memories.listed()) == 3


def test_L2_a_text_is_one_short_visible_line():
    assert memory_line("a\nb\x1b[2J\u202e\u200bc") == "a b [2J c"
    assert len(memory_line("長" * 1000)) == LONGEST_MEMORY


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("Why do the tests fail?", "run the test suite with make check"),
        ("ログインの画面を直して", "ログイン処理は認証サーバーが要る"),
        ("設定を変えたい", "初期設定は config/app.toml にある"),
        ("テストを実行して", "テストは make check で走らせる"),
        ("fix CONFIG/app.toml", "初期設定は config/app.toml にある"),
        ("빌드를 고쳐 주세요", "빌드에는 cmake 가 필요하다"),
    ],
)
def test_L2_texts_are_found_by_what_they_speak_of_in_any_language(log, memories, wanted, found):
    keep(
        log,
        "run the test suite with make check",
        "ログイン処理は認証サーバーが要る",
        "初期設定は config/app.toml にある",
        "テストは make check で走らせる",
        "빌드에는 cmake 가 필요하다",
        "the colours are in theme.css",
    )
    assert recalled(memories, wanted)[0] == found


@pytest.mark.parametrize("wanted", ["what is it for?", "これをお願いします", "", "!?"])
def test_L2_words_that_say_nothing_find_nothing(log, memories, wanted):
    keep(log, "This is what it is for, and that is it", "これはそれをする、とてもよい")
    assert recalled(memories, wanted) == []


def test_L2_what_few_texts_speak_of_counts_more(log, memories):
    keep(log, *(f"parser step {number}" for number in range(8)), "the tokenizer came first")
    assert recalled(memories, "parser and tokenizer")[0] == "the tokenizer came first"


def test_L2_wishes_are_told_even_where_no_word_fits_and_after_what_fits(log, memories):
    keep(log, "short answers please", kind="preference")
    keep(log, "the parser needs python 3.12", "unrelated lesson")
    assert recalled(memories, "change the parser") == ["the parser needs python 3.12", "short answers please"]


def test_L2_no_more_than_a_few_come_back_and_only_those_of_the_folder(log, memories):
    keep(log, *(f"parser lesson {number}" for number in range(10)))
    keep(log, "parser elsewhere", workspace="/other")
    keep(log, "parser everywhere", workspace="", kind="preference")
    found = recalled(memories, "parser")
    assert len(found) == MOST_RECALLED
    assert "parser elsewhere" not in found
    assert recalled(memories, "parser", "/other") == ["parser everywhere", "parser elsewhere"]


def test_L2_how_often_and_when_a_text_was_used_is_known(log, memories):
    keep(log, "parser", "lexer")
    recalled(memories, "parser")
    recalled(memories, "parser")
    uses = {one.text: (one.uses, one.used is not None) for one in memories.listed()}
    assert uses == {"parser": (2, True), "lexer": (0, False)}


def test_L2_past_the_bound_what_was_not_used_for_longest_goes(log, memories):
    keep(log, "one parser", "two lexers", "three trees")
    recalled(memories, "parser")
    keep(log, "four roots")
    recalled(memories, "nothing", most=2)
    assert [one.text for one in memories.listed()] == ["four roots", "one parser"]


def test_L2_the_user_edits_and_deletes(log, memories):
    keep(log, "one", "two", "three")
    first, second, third = reversed(memories.listed())
    assert memories.edit(first.id, " uno\n").text == "uno"
    assert [one.text for one in memories.delete([second.id])] == ["two"]
    assert [one.text for one in memories.listed()] == ["three", "uno"]
    assert memories.clear() == 2
    assert memories.listed() == []
    keep(log, "four")
    assert memories.listed()[0].id > third.id  # a number never comes to mean another text


def test_L2_a_number_that_is_not_there_is_told_and_nothing_goes(log, memories):
    keep(log, "one")
    (kept,) = memories.listed()
    for wrong in (lambda: memories.delete([kept.id, 99]), lambda: memories.edit(99, "x")):
        with pytest.raises(UsageError) as caught:
            wrong()
        assert (caught.value.key, caught.value.values) == ("memory.no_such", {"id": 99})
    with pytest.raises(UsageError) as caught:
        memories.edit(kept.id, " \u200b ")
    assert caught.value.key == "memory.empty"
    assert [one.text for one in memories.listed()] == ["one"]


def test_L2_what_was_deleted_leaves_no_trace_in_the_table(tmp_path, log, memories):
    keep(log, "zebra crossing")
    memories.edit(memories.listed()[0].id, "quagga crossing")
    memories.clear()
    assert b"quagga" not in b"".join(one.read_bytes() for one in tmp_path.iterdir())


def test_L2_a_mended_file_keeps_its_memory_and_what_was_deleted_stays_so(tmp_path, log, memories):
    keep(log, "kept", "gone", kind="preference")
    memories.delete([memories.listed()[0].id])
    recalled(memories, "kept")
    before = memories.listed()
    log.close()
    recover(tmp_path / "duckflow.db")
    mended = SqliteEventLog(tmp_path / "duckflow.db")
    assert Memories(mended.database).listed() == before
    assert [one.text for one in before] == ["kept"]
    mended.close()


def test_terms_are_words_and_pairs_of_letters():
    assert terms_of("Testing the files: main_loop.py") == {"test", "fil", "main", "loop", "py"}
    assert terms_of("設定ファイルを見て") == {"設定", "定フ", "ファ", "ァイ", "イル", "見"}
