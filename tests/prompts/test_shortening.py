"""Texts for an evaluator are cut around changed lines, never through them (J2)."""

from hypothesis import given
from hypothesis import strategies as st

from duckflow.prompts.shortening import fair_shares, fold_removed, narrow, shorten
from duckflow.tools.editing.differences import unified

OLD = [f"line {number}" for number in range(400)]


def difference(changes: dict[int, str], path: str = "a.py") -> str:
    new = [changes.get(at, line) for at, line in enumerate(OLD)]
    return "\n".join(["check of a.py: there, 400 lines", unified(path, _text(OLD), _text(new))])


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


@given(st.lists(st.integers(0, 10_000), max_size=12), st.integers(0, 40_000))
def test_shares_are_fair_and_never_more_than_there_is(sizes, budget):
    shares = fair_shares(sizes, budget)
    assert sum(shares) <= budget
    assert all(share <= size for share, size in zip(shares, sizes, strict=True))
    cut = [share for share, size in zip(shares, sizes, strict=True) if share < size]
    assert not cut or max(cut) - min(cut) <= 1
    assert not cut or all(
        share <= min(cut) for share, size in zip(shares, sizes, strict=True) if share == size
    )


def test_what_fits_is_whole():
    text = difference({5: "five"})
    assert shorten(text, len(text)) == text


def test_unchanged_lines_go_before_any_changed_one_J2():
    changes = {at: f"changed {at}" for at in (*range(10, 400, 30), 105)}
    text = difference(changes)
    shown = shorten(text, len(text) * 9 // 10)
    assert len(shown) < len(text) * 9 // 10
    assert all(f"+changed {at}" in shown and f"-line {at}\n" in shown for at in changes)
    assert "… 2 unchanged lines …" in shown


def test_changed_lines_that_do_not_fit_are_counted_J2():
    text = difference({at: f"changed {at}" for at in range(100, 300)})
    shown = shorten(text, 2_000)
    assert len(shown) <= 2_100
    assert "+changed 299" in shown
    assert "-line 100" in shown
    kept = sum(line.startswith("+") for line in shown.splitlines()) - 1
    removed = sum(line.startswith("-") for line in shown.splitlines()) - 1
    assert f"left out: {200 - kept} added and {200 - removed} removed lines" in shown


def test_places_that_do_not_fit_are_counted_too_J2():
    text = difference({at: f"changed {at}" for at in range(0, 400, 20)})
    shown = shorten(text, 700)
    assert "+changed 0" in shown
    assert "more places left out" in shown


def test_a_line_without_end_does_not_push_out_the_others_J2():
    shown = shorten(difference({5: "x" * 50_000, 300: "the one that matters"}), 3_000)
    assert "+the one that matters" in shown
    assert len(shown) <= 3_000


def test_other_text_keeps_its_beginning_and_end():
    text = "".join(f"{number} of the output\n" for number in range(1_000))
    shown = shorten(text, 1_000)
    assert shown.startswith("0 of the output")
    assert shown.endswith("999 of the output\n")
    assert "characters left out" in shown


def test_J2_long_runs_of_removed_lines_are_only_begun():
    difference = "\n".join(["@@ -1,20 +1,2 @@", *(f"-old {n}" for n in range(20)), "+new", "-last"])
    folded = fold_removed(difference).split("\n")
    assert folded[:5] == ["@@ -1,20 +1,2 @@", "-old 0", "-old 1", "-old 2", "-old 3"]
    assert folded[5:] == ["… 16 more removed lines …", "+new", "-last"]
    assert fold_removed("-a\n-b\n+c") == "-a\n-b\n+c"


def test_J2_a_difference_shows_only_the_lines_next_to_its_changes():
    difference = "--- a/x\n+++ b/x\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7"
    assert narrow(difference).split("\n")[3:] == [" 3", "-4", "+four", " 5"]
    assert narrow("no difference") == "no difference"
