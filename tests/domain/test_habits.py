"""M1: words for a shell are recognised in every spelling, and no request is mistaken for one."""

from duckflow.domain.habits import habit_of

HABITS = {
    "leave": "exit EXIT quit exit() quit(); :q :q! :wq exit. 終了 終了。 ｅｘｉｔ logout bye .exit \\q",
    "clear": "clear cls Clear clear; reset クリア",
    "help": "help ? ？ help() :help --help -h ヘルプ 使い方",
    "shell": "ls ll pwd cd dir cd.. ..",
}
WITH_ARGUMENTS = (
    "ls -la",
    "ls -l src/",
    "cd src",
    "cd ..",
    "cd ~/work",
    'cd "my folder"',
    "dir src",
    "ls *.py",
    "ls -a -l .",
)
REQUESTS = (
    "clear the cache in app.py",
    "exit code 3 is wrong",
    "help me with the parser",
    "ls の出力を説明して",
    "list the files",
    "cd into src and run the tests",
    "ls src and explain every file",
    "終了コードを直して",
    "ヘルプを書いて",
    "quit is not handled",
    "What does cd do?",
    "画面をクリアする関数を書いて",
    "make",
    "y",
    "はい",
    "",
    " ",
)


def test_M1_words_for_a_shell_are_recognised_in_every_spelling():
    for habit, words in HABITS.items():
        wrong = [word for word in words.split() if habit_of(word) != habit]
        assert not wrong, habit
    assert not [line for line in WITH_ARGUMENTS if habit_of(line) != "shell"]
    assert habit_of("  exit \n") == "leave"


def test_M1_a_request_is_no_habit():
    assert not [said for said in REQUESTS if habit_of(said)]
