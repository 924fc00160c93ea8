"""What a request names, and whether it is there to be seen."""

from duckflow.evaluation.facts import Fact
from duckflow.evaluation.mentions import named_files, named_words, unseen_names
from fakes.rows import every_row


@every_row(
    ("text", "files"),
    [
        ("Create hello.py that prints hello", ["hello.py"]),
        ("hello.pyとtests/test_a.pyを直して。", ["hello.py", "tests/test_a.py"]),
        ("Fix ./src/a.c, then Makefile.am.", ["src/a.c", "Makefile.am"]),
        ("See `pyproject.toml` (or setup.cfg)", ["pyproject.toml", "setup.cfg"]),
        ("Use .eslintrc.json and my-file_2.test.js", [".eslintrc.json", "my-file_2.test.js"]),
        ("Python 3.11 costs 4.50, mail me@example.com", []),
        ("Nothing here.", []),
        ("See https://example.com/a.html for more", []),
        ("Read /etc/hosts.allow, ../up.txt and .env", ["/etc/hosts.allow", "../up.txt"]),
        ("e.g. -.x ...", ["e.g"]),
        ("a.py a.py", ["a.py"]),
    ],
)
def test_files_a_request_names_are_found(text, files):
    assert list(named_files(text)) == files


@every_row(
    ("text", "words"),
    [
        ("a class Stack that has push, pop and is_empty", ["is_empty"]),
        ("関数fib(n)を書いて", ["fib"]),
        ("call `run` and `run` in my_file.py", ["run"]),
        ("in `a.py`", []),
        ("Nothing (at all)", []),
        ("__init__ and _x_y", ["__init__", "_x_y"]),
        ("pass `--all files` to os.path_join", ["--all files"]),
    ],
)
def test_names_in_code_are_found_without_a_list_of_words(text, words):
    assert list(named_words(text)) == words


def test_what_is_named_and_not_shown_is_said():
    facts = [
        Fact(path="lib/a.py", state="parses", content="def push(self): ..."),
        Fact(path="b.md", state="readable"),
    ]
    request = "Write a.py with `push`, pop_all and `peek(n)`, and b.md, and c.py"
    assert unseen_names(request, facts) == ("c.py", "peek", "pop_all")
    assert unseen_names("Make it nice", facts) == ()


@every_row("text", ["a" * 100_000, "a." * 50_000, "a/" * 50_000, "_" * 100_000, "`" * 100_000])
def test_no_request_makes_the_search_slow(text):
    assert len(named_files(text)) + len(named_words(text)) <= 4_000
