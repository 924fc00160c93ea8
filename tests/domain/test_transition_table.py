"""Step transitions, every cell of the table (D2)."""

from duckflow.domain.transitions import Step, Transitions
from fakes.rows import every_row

P, E, R, A, D = Step.PLANNING, Step.EXECUTION, Step.REVIEW, Step.AWAITING_APPROVAL, Step.DONE

# From, to: y permitted, e only on error, . never; staying is no transition.
TABLE = {
    P: {P: "y", E: "y", R: "y", A: "y", D: "y"},
    E: {P: "e", E: "y", R: "y", A: "y", D: "."},
    R: {P: "e", E: "y", R: "y", A: "y", D: "y"},
    A: {P: "y", E: "y", R: ".", A: "y", D: "."},
    D: {P: "y", E: ".", R: ".", A: ".", D: "y"},
}


@every_row("start", Step)
@every_row("end", Step)
def test_D2_every_pair_is_as_the_table_says(start, end):
    cell = TABLE[start][end]
    assert Transitions().permit(start, end) is (cell == "y")
    assert Transitions().permit(start, end, on_error=True) is (cell in "ye")


def test_the_names_are_the_ones_the_model_and_others_use_D1():
    assert [step.value for step in Step] == ["PLANNING", "EXECUTION", "REVIEW", "AWAITING_APPROVAL", "DONE"]
