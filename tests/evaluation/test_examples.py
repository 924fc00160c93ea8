"""Sentences of a request that a program can run as examples (J10)."""

from duckflow.evaluation.examples import call_examples
from fakes.rows import every_row

SOURCE = "def add(a, b): ...\ndef greet(name): ...\ndef split(n): ...\n"


@every_row(
    ("request", "examples"),
    [
        ("Write add: add(2, 3) -> 5", ["add(2, 3) == 5"]),
        ("Write add: add(2, 3) -> 5, and a test for it", ["add(2, 3) == 5"]),
        (
            "add(2, 3) -> 5, add(1, 1) -> 2, add(0, 0) -> 0.",
            ["add(2, 3) == 5", "add(1, 1) == 2", "add(0, 0) == 0"],
        ),
        ("add(2, 3) returns 5 , and so on", ["add(2, 3) == 5"]),
        ("add(0.25, 0.25) -> 0.5.", ["add(0.25, 0.25) == 0.5"]),
        ("greet('A') -> 'Hi, A', in any case", ["greet('A') == 'Hi, A'"]),
        ("split(7) -> (3, 1), as divmod does", ["split(7) == (3, 1)"]),
        ("split(7) -> [3, 1], as a list", ["split(7) == [3, 1]"]),
        ("split(7) -> (3,), one only", ["split(7) == (3,)"]),
        ("add(2, 3)は5、add(1, 1)は2を返す", ["add(2, 3) == 5", "add(1, 1) == 2"]),
        ("add(2, 3)は5です。greet('A')は'Hi'を返す", ["add(2, 3) == 5", "greet('A') == 'Hi'"]),
        ("add(2, 3) must be 5 when both are given (see calc.py)", ["add(2, 3) == 5"]),
        ("greet('A') returns 'Hi' only, add(1, -2) -> -1!", ["greet('A') == 'Hi'", "add(1, -2) == -1"]),
        ("add(1, 1) == True for fun", ["add(1, 1) == True"]),
        ("split() raises TypeError.", ["split() raises TypeError"]),
        ("split('x') raises ValueError if it is text", ["split('x') raises ValueError"]),
        # A function that is only mentioned, with its parentheses.
        ("Make add() raise ValueError for a negative price", []),
        ("greet() must raise a `ValueError` if the name is empty", []),
        # Left to the evaluator: several values, the rest of a sentence, "a thousand".
        ("split(7) -> 3, 1", []),
        ("add(2, 3) -> 5, 10 files are too many", []),
        ("add(500, 500) -> 1,000", []),
        ("add(2, 3) returns 5 instead of 6", []),
        ("split('a b c') returns 3 items", []),
        ("add(2, 3) is 5 or more", []),
        ("split(9) returns 5-10 words", []),
        ("add(2, 3)は5以上", []),
        ("split(9)は3個の要素を返す", []),
        ("add(2, 3)は5を返さない", []),
        ("subtract(2, 3) -> 5", []),
    ],
)
def test_J10_only_what_is_said_without_doubt_is_an_example(request: str, examples: list[str]):
    assert [one.name for one in call_examples(request, "calc.py", SOURCE)] == examples
