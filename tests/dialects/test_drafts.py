"""Drafts that repeat themselves without end are noticed, cut and used (J11)."""

from duckflow.dialects.compact_prompt import content_prompt
from duckflow.dialects.drafts import DraftCheck, DraftLimits, draft, first_round
from duckflow.domain.model import ModelRequest
from fakes.model import FakeModel

HEAD = "def is_paired(text):\n    return not text\n\n"
TESTS = "".join(f"assert is_paired({'()' * n!r}) == True\n" for n in range(20))
TABLE = "0.0, 0.0, 0.0, 0.0,\n" * 30
CARDS = '<div class="card"><h2>Title</h2><p>Some words about it.</p></div>\n' * 8


def test_J11_a_passage_that_repeats_is_found_and_its_first_round_ends_with_a_whole_line():
    assert first_round(HEAD + TESTS) is None
    twice = HEAD + TESTS * 2
    assert twice[: first_round(twice)] == (HEAD + TESTS).rstrip("\n")
    in_a_line = twice + TESTS[:50]
    assert in_a_line[: first_round(in_a_line)] == (HEAD + TESTS).rstrip("\n")


def test_a_coincidence_before_the_first_round_does_not_cut_a_line():
    line = "    check(is_paired('[]'), True)\n"
    text = f"{HEAD}    check(is_paired('()'), True)\n{line * 40}"
    assert text[: first_round(text)].splitlines()[-2:] == ["    check(is_paired('()'), True)", line.rstrip()]


def test_J11_examples_without_end_are_cut_after_some():
    """Each has other numbers, so no line occurs twice."""
    examples = [
        f'print(add("{n}:0{n % 7}", {"-" * (n % 2)}{n * 3}))  # Output: "{n * 5}:1{n}"' for n in range(12)
    ]
    text = HEAD + "\n".join(examples) + "\nprint(add("
    assert text[: first_round(text)] == HEAD + "\n".join(examples[:3])
    others = [f"print({word!r})" for word in "abcdefghijklmnop"]
    rows = [f"    row({n}, {n * 2})," for n in range(30)]
    for honest in (examples[:11], others, rows):
        assert first_round(HEAD + "\n".join(honest) + "\n") is None


def test_honest_tables_and_lists_are_no_repetition():
    assert [first_round(text) for text in (TABLE, CARDS[: len(CARDS) // 2], "", "x", HEAD * 3)] == [None] * 5


async def test_J11_a_draft_that_goes_round_is_stopped_cut_and_used():
    model = FakeModel(HEAD + TESTS * 50)
    prompt = content_prompt("", "a.py", exists=False, unseen=None)

    async def check(content: str) -> DraftCheck:
        return DraftCheck()

    asked = ModelRequest(output="Content", messages=())
    content, _ = await draft(
        model,
        asked,
        prompt,
        check,
        DraftLimits(),
        failed_attempts=0,
        path="a.py",
        current=None,
        must_change=True,
    )
    assert content == HEAD + TESTS
    assert model.pieces_taken * 7 < len(HEAD + TESTS * 3)
