"""An answer that can't be used, and the exact words about it that go back to the model."""

from duckflow.domain.errors import DuckflowError


class UnusableAnswer(DuckflowError):
    """An answer that can't be used; `problem` is the sentence for the model."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
