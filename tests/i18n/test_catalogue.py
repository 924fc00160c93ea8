"""M4: texts in two languages, the choice between them, and unusual or missing values."""

from duckflow.i18n.catalogue import (
    current_language,
    detect,
    entries,
    fill,
    set_language,
    slots,
    take_gaps,
    text,
)
from fakes.rows import every_row

ENGLISH, JAPANESE = entries("en"), entries("ja")
SAME_IN_BOTH: frozenset[str] = frozenset({"model.line"})
"""Keys whose text has no words to translate, such as a drawing."""


def test_M4_both_catalogues_have_the_same_keys():
    assert ENGLISH
    assert set(ENGLISH) == set(JAPANESE)


@every_row("key", sorted(ENGLISH))
def test_M4_both_languages_fill_the_same_slots(key):
    assert slots(ENGLISH[key]) == slots(JAPANESE[key])


@every_row("key", sorted(set(ENGLISH) - SAME_IN_BOTH))
def test_no_text_is_empty_and_the_japanese_is_japanese(key):
    english, japanese = ENGLISH[key].strip(), JAPANESE[key].strip()
    assert english
    assert japanese
    if any(character.isalpha() for character in fill(english, dict.fromkeys(slots(english), ""))):
        assert any("぀" <= character <= "ヿ" or "一" <= character <= "鿿" for character in japanese), japanese


def test_the_japanese_has_one_word_and_one_sign_for_each_thing():
    """Colons are half-width, and words that a Japanese developer would not use do not occur."""
    wrong = ("：", "端末", "危険度", "文脈", "提供元", "台本", "無事です", "入っていません", "切ってある")
    assert not {key: one for key, said in JAPANESE.items() for one in wrong if one in said}


def test_the_english_reads_like_english():
    wrong = ("anew", "every change asks", "command asks", "where there is none", "mend", "sends us elsewhere")
    assert not {key: one for key, said in ENGLISH.items() for one in wrong if one in said}


def test_the_language_can_be_changed_at_any_time():
    assert current_language() == "en"
    assert text("help.config") == "Your settings."
    set_language("ja")
    assert text("help.config") == "設定を確認します。"


@every_row("value", ["{path}", "{0}", "{path.__class__}", "{{x}}", "}", "{", "%s", "\\1", "日本語"])
def test_a_value_is_never_read_as_a_slot(value):
    assert fill("a {name} b {path}", {"name": value, "path": "P"}) == f"a {value} b P"


def test_doubled_braces_are_plain_ones():
    assert fill("{{x}} {x} {{}}", {"x": 1}) == "{x} 1 {}"
    assert slots("{{x}} {y}") == {"y"}


def test_a_path_can_not_imitate_a_line_of_duckflow():
    """SAFETY 19: line ends in the name of a file are written out."""
    found = fill("{path} {files} {text}", {"path": "a\nb", "files": "c\rd\u2028e", "text": "f\ng"})
    assert found == "a\\u000ab c\\u000dd\\u2028e f\ng"


def test_an_unknown_key_and_a_missing_value_stay_readable_and_are_noticed():
    assert text("no.such_key") == "no.such_key"
    assert text("no.such_key", path="a.py", line=3) == "no.such_key (path: a.py, line: 3)"
    assert text("config.not_a_file").startswith("{path} is not a file")
    assert take_gaps() == {"no.such_key", "config.not_a_file{path}"}
    assert take_gaps() == frozenset()


@every_row(
    ("configured", "environ", "language"),
    [
        ("ja", {"DUCKFLOW_LANGUAGE": "en", "LANG": "en_US.UTF-8"}, "ja"),
        ("en", {"LANG": "ja_JP.UTF-8"}, "en"),
        ("auto", {"DUCKFLOW_LANGUAGE": "ja", "LC_ALL": "en_US.UTF-8"}, "ja"),
        ("auto", {"DUCKFLOW_LANGUAGE": "klingon", "LANG": "ja_JP.UTF-8"}, "ja"),
        ("auto", {"LC_ALL": "ja_JP.UTF-8", "LANG": "en_US.UTF-8"}, "ja"),
        ("auto", {"LC_ALL": "C", "LC_MESSAGES": "ja_JP", "LANG": "ja_JP.UTF-8"}, "en"),
        ("auto", {"LC_ALL": "", "LC_MESSAGES": "ja_JP", "LANG": "en_US.UTF-8"}, "ja"),
        ("auto", {"LANG": "ja"}, "ja"),
        ("auto", {"LANG": "de_DE.UTF-8"}, "en"),
        ("auto", {}, "en"),
    ],
)
def test_M4_the_language_follows_configuration_then_variable_then_locale(configured, environ, language):
    assert detect(configured, environ) == language
