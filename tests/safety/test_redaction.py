"""SAFETY 14: secrets are found, and what is none is left alone; markers, restoring, linear time."""

import re
import re._constants as sre
import re._parser as parser
import sysconfig
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import ActionFinished
from duckflow.safety.redaction.patterns import all_patterns, lower, patterns_for
from duckflow.safety.redaction.redactor import MARKER, Redactor, refuse_markers
from duckflow.safety.redaction.values import is_secret_name, known_secrets
from fakes.rows import every_row
from fakes.secret_texts import BASE62, FORMATS, HARMLESS, HEX, JWT, PEM, SECRETS

TOKEN = "ghp_" + BASE62[:36]


@every_row("case", SECRETS, ids=lambda case: case.text[:40])
def test_a_secret_is_replaced_and_nothing_around_it(case):
    shown = Redactor().clean(case.text)
    marker = MARKER.search(shown)
    assert marker, shown
    assert shown == case.text.replace(case.secret, marker[0])
    assert marker[0].split(":")[1] == case.kind


@every_row("text", HARMLESS, ids=lambda text: text[:40])
def test_what_is_no_secret_is_left_alone(text):
    assert Redactor().clean(text) == text
    surrounded = f"before\n+{text}\nafter\n"
    assert Redactor().clean(surrounded) == surrounded


def test_ordinary_code_has_no_secrets():
    """The library of Python itself: hashes, identifiers, long tables, test keys are not taken for tokens."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:80]
    found = [
        (source.name, text[match.start : match.end][:60])
        for source in sources
        for text in [source.read_text("utf-8", "replace")]
        for pattern in patterns_for(text)
        for match in pattern.find(text, lower(text))
    ]
    assert len(sources) > 50
    assert found == []


def test_there_are_enough_cases():
    assert len(FORMATS) >= 53
    assert min(len(SECRETS), len(HARMLESS)) >= 40


@every_row("sign", ["+", "-", " "])
def test_a_private_key_in_a_difference_is_replaced_whole(sign):
    text = "".join(f"{sign}{line}\n" for line in PEM.splitlines())
    shown = Redactor().clean(f"@@ -1 +1 @@\n{text} end\n")
    assert BASE62[:20] not in shown
    assert shown.startswith("@@ -1 +1 @@\n")
    assert shown.endswith(" end\n")


def test_a_private_key_that_was_cut_off_is_replaced_as_far_as_it_goes():
    assert BASE62[:20] not in Redactor().clean(PEM[:90])


def test_the_same_secret_has_the_same_marker_and_another_one_another():
    redactor = Redactor()
    first, again = redactor.clean(f"{TOKEN} x"), redactor.clean(f"y {TOKEN}")
    other = redactor.clean("ghp_" + BASE62[1:37])
    assert MARKER.findall(first) == MARKER.findall(again)
    assert MARKER.findall(first) != MARKER.findall(other)


def test_another_process_has_another_marker():
    """The hash has a key that is not stored, so guesses can not be tested."""
    shown = {Redactor(key=bytes([number]) * 32).clean(TOKEN) for number in range(20)}
    assert len(shown) > 10


def test_two_secrets_never_share_a_marker():
    redactor = Redactor(key=b"k" * 32)
    tokens = [f"ghp_{number:036d}" for number in range(1500)]
    assert len({redactor.clean(token) for token in tokens}) == len(tokens)


def test_a_secret_met_once_is_found_in_any_surroundings():
    redactor = Redactor()
    redactor.clean(f"API_TOKEN={BASE62[:32]}\n")
    assert BASE62[:32] not in redactor.clean(f"the value is {BASE62[:32]}, nothing else")


@given(st.lists(st.sampled_from([case.text for case in SECRETS] + list(HARMLESS)), max_size=6))
def test_redacting_twice_changes_nothing_more(texts):
    redactor = Redactor({"q7Rk2pLw9Z1x": "my-key"})
    once = redactor.clean("\n".join(texts))
    assert redactor.clean(once) == once
    assert Redactor().clean(once) == once


@given(st.text(max_size=300))
def test_no_text_breaks_it(text):
    assert isinstance(Redactor().clean(text), str)


def test_events_are_cleaned_in_every_field_and_left_alone_without_secrets():
    event = ActionFinished(
        action_id="a1",
        operation="shell.run",
        outcome="ok",
        text=f"token {TOKEN}",
        evidence_id="e1",
        digest=HEX,
        then=(Action(operation="x", args={"list": [{"deep": JWT}], TOKEN: 1}),),
    )
    clean = Redactor().clean_all(event)
    assert TOKEN not in clean.model_dump_json()
    assert JWT not in clean.model_dump_json()
    assert clean.digest == HEX
    plain = event.model_copy(update={"text": "fine", "then": ()})
    assert Redactor().clean_all(plain) is plain


class TestKnownValues:
    ENVIRONMENT: ClassVar = {
        "OPENAI_API_KEY": "plain-key-0001",
        "HF_TOKEN": "hub%20value&9",
        "DATABASE_URL": "postgres://duck:pond%21water9@db/x",
        "SESSION_SECRET": "only letters but quite long ones",
        "HOME_KEY_PATH": "/home/duck/.keys/a1",
        "TOKEN_LIMIT": "100000000",
        "PWD": "/home/duck/work12",
        "SSH_AUTH_SOCK": "/tmp/agent.1234",
        "DEBUG_TOKEN": "development",
        "GPG_KEY": HEX[:40].upper(),
        "SHORT_KEY": "abc",
        "EDITOR": "some-editor-9000",
    }

    def test_only_those_that_are_secret_are_known(self):
        assert {*known_secrets(self.ENVIRONMENT)} >= {
            "plain-key-0001",
            "hub%20value&9",
            "pond%21water9",
            "pond!water9",
            "only letters but quite long ones",
        }
        kinds = set(known_secrets(self.ENVIRONMENT).values())
        assert kinds == {"openai-api-key", "hf-token", "database-url", "session-secret"}

    def test_they_are_replaced_wherever_they_are(self):
        redactor = Redactor(known_secrets(self.ENVIRONMENT))
        shown = redactor.clean("xxplain-key-0001yy and pond!water9, hub%2520value%269")
        assert [marker.split(":")[1] for marker in MARKER.findall(shown)] == [
            "openai-api-key", "database-url", "hf-token"
        ]  # fmt: skip

    @every_row("name", ["MY_API_KEY", "dbPassword", "GITHUB_TOKEN", "AWS_ACCESS_KEY_ID", "NPM_AUTH"])
    def test_names_of_secrets(self, name):
        assert is_secret_name(name)

    @every_row("name", ["KEYBOARD", "PATH", "PWD", "TOKEN_URL", "KEY_FILE", "CLIENT_ID", "TERM"])
    def test_names_of_other_things(self, name):
        assert not is_secret_name(name)


class TestOwnWords:
    """Text that the model wrote reaches the tool unchanged; redacted secrets of others do not."""

    def test_what_the_model_wrote_is_put_back(self):
        redactor = Redactor()
        action = Action(operation="w", args={"content": f"KEY = '{TOKEN}'\n", "n": 1})
        kept = redactor.clean_all(action, own=True)
        assert TOKEN not in str(kept.args)
        assert redactor.restore(kept) == action

    def test_what_was_read_is_not_put_back(self):
        redactor = Redactor()
        seen = redactor.clean(f"read: {TOKEN}")
        action = Action(operation="w", args={"content": seen})
        assert redactor.restore(action) == action
        with pytest.raises(ToolError, match=r"redacted:github-token.*edit_file"):
            refuse_markers(action.args)

    def test_another_process_can_not_put_it_back(self):
        action = Action(operation="w", args={"content": Redactor().clean(TOKEN, own=True)})
        assert Redactor().restore(action) == action

    def test_arguments_without_a_marker_are_not_refused(self):
        refuse_markers({"content": "[redacted] and [redacted:x]", "list": ["a", 1, None]})


def repeats(parsed, inside=()):
    """Every repeat of an expression: how often at most, whether it can give back, and those around it."""
    for operation, argument in parsed:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            one = (argument[1], operation != sre.POSSESSIVE_REPEAT)
            yield (*inside, one)
            yield from repeats(argument[2], (*inside, one))
        elif operation is sre.SUBPATTERN:
            yield from repeats(argument[3], inside)
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from repeats(branch, inside)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from repeats(argument[1], inside)
        elif operation is sre.ATOMIC_GROUP:
            yield from repeats(argument, inside)


@every_row("pattern", all_patterns(), ids=lambda pattern: f"{pattern.kind} {pattern.needles[0]}")
def test_every_expression_takes_linear_time(pattern):
    """Every repeat is bounded; where one that can give back stands in another, their product is small."""
    found = list(repeats(parser.parse(pattern.expression.pattern, pattern.expression.flags & ~re.UNICODE)))
    for nested in found:
        most = 1
        for limit, gives_back in nested:
            assert limit <= 20_000, "a repeat without a bound"
            most *= limit if gives_back else 1
        assert most <= 300


@pytest.mark.parametrize(
    "unit",
    [
        "token=",
        "password: ",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "://a:",
        "sk-",
        "ghp_",
        "A",
        "bearer ",
        "Aa1",
    ],
)
def test_any_amount_of_anything_is_judged_a_bounded_number_of_times(unit, monkeypatch):
    text = unit * (200_000 // len(unit))  # the bound grows with the text, so more of it shows nothing more
    judged = []
    counted = tuple(
        pattern._replace(
            judge=lambda found, own=pattern.judge: judged.append(1) or (own is None or own(found))
        )
        for pattern in all_patterns()
    )
    monkeypatch.setattr("duckflow.safety.redaction.redactor.patterns_for", lambda _text: counted)
    Redactor().clean(text)
    assert len(judged) <= 3 * len(text) // len(unit)


def test_SAFETY22_a_token_lent_to_a_host_is_hidden_whatever_its_variable_is_called():
    lent = {"GH": "quite-plain-words\n", "EMPTY": " "}
    assert known_secrets(lent) == {}
    assert known_secrets(lent, lent) == {"quite-plain-words": "gh"}
