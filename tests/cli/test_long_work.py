"""A strong model's session in a git repository, as a real process, and `/undo all` after it."""

from pathlib import Path

from fakes.long_work import SHORT, work_and_undo, wrong_with


def test_G3_G9_G10_long_work_in_auto_asks_nothing_and_undo_gives_all_back(tmp_path: Path):
    """Edits, loops, here documents, commits and a merge; then every path is as it was, `.git` too."""
    wrong = wrong_with(work_and_undo(tmp_path, 60, {"LANG": "C.UTF-8"}, SHORT))
    assert not wrong, "\n".join(wrong)
