"""I6: what a person types as an answer to a consultation, in both scripts."""

import pytest

from duckflow.domain.consultation import CHOICES, Consultation
from duckflow.ui.input.answers import read_choice

ASKED = Consultation(
    consultation_id="c1",
    kind="stagnation",
    situation="consultation.stagnation",
    choices=CHOICES["stagnation"],
)


@pytest.mark.parametrize(
    ("said", "choice", "text"),
    [
        ("2", "more_information", ""),
        (" 2. ", "more_information", ""),
        ("2) look at b.py", "more_information", "look at b.py"),
        ("2: look at b.py", "more_information", "look at b.py"),
        ("２　b.py を見て", "more_information", "b.py を見て"),
        ("２、b.py を見て", "more_information", "b.py を見て"),
        ("go_on", "go_on", ""),
        ("GO_ON please", "go_on", "please"),
        ("2つ目のファイルを見て", "", "2つ目のファイルを見て"),
        ("2.5 seconds is too slow", "", "2.5 seconds is too slow"),
        ("5", "", "5"),
        ("look at b.py", "", "look at b.py"),
        ("", "", ""),
    ],
)
def test_I6_a_number_a_name_or_only_words(said, choice, text):
    answer = read_choice(said, ASKED)
    assert (answer.choice, answer.text) == (choice, text)
