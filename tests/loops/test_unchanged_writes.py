"""J3: writing what a file already contains is no change, for the model, the user and the verdict."""

from pathlib import Path

from duckflow.domain.events import ActionFinished
from duckflow.ui.views.events import Describer
from fakes.engine import action, decision, engine


async def test_J3_writing_the_content_that_a_file_already_has_is_no_change(tmp_path: Path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    answers = [
        decision("", action("write_file", path="a.py", content="x = 1\n")),
        decision("", action("edit_file", path="a.py", edits=[{"find": "x = 1", "replace": "x = 1"}])),
        decision("Done."),
    ]
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("Set x to 1 in a.py")
        written, edited = duck.of(ActionFinished)
        assert written.text.startswith("unchanged a.py")
        assert edited.outcome == "failed" or edited.unchanged
        shown = Describer()(written)
        assert shown is not None
        assert shown.text == "= a.py is unchanged: it already had this content"
        assert duck.state.finished is not None
        assert duck.state.finished.changed == ()
        entry = next(one for one in duck.state.transcript if one.evidence_id == written.evidence_id)
        assert entry.supports == "reading"
