"""Parts of a session's transcript that an evaluator sees."""

from duckflow.domain.work.objective import Evidence
from duckflow.prompts.evidence import evidence_in, show_evidence
from fakes.prompt_states import asked, found


def test_evidence_comes_from_the_transcript_by_its_id_and_old_versions_are_marked():
    state = asked("Fix a.py", found(1, "old", "a.py", stale=True), found(2, "new", "a.py"))
    assert evidence_in(state) == (
        Evidence(evidence_id="e1", text="file_ops.read_file: ok\nold", current=False),
        Evidence(evidence_id="e2", text="file_ops.read_file: ok\nnew"),
    )


def test_it_is_shown_under_its_id_once():
    shown = show_evidence(evidence_in(asked("Fix a.py", found(2, "new", "a.py"))), 1_000)
    assert shown == "Evidence, oldest first\n\n[e2] file_ops.read_file: ok\nnew"
    assert show_evidence((), 1_000) == "Evidence: none"
    assert show_evidence(evidence_in(asked("x", found(1, "word " * 99))), 10) == "Evidence: none"
