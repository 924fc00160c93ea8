"""Plain wishes are read from the words alone. Most of these were typed in real conversations."""

from duckflow.domain.wishes import leaves_it, plain_wish
from fakes.rows import every_row


@every_row(
    ("said", "wish"),
    [
        ("there is a bug in average, fix it", "change"),
        ("the game should say higher or lower", "change"),
        ("the minus button adds instead of subtracting", "change"),
        ("can you make it look nicer?", "change"),
        ("名前を聞いてから挨拶するように変えて", "change"),
        ("3 回勝負にして", "change"),
        ("直してもらえますか？", "change"),
        ("マイナスボタンを押しても増えます", "change"),
        ("explain calc.py", "answer"),
        ("what happens if I divide by zero?", "answer"),
        ("how do I add a test", "answer"),
        ("説明して", "answer"),
        ("リストとタプルの違いは？", "answer"),
        ("CPUの強さは選べるようになりますか？", "answer"),
        ("run the tests", "tests"),
        ("テストを実行してください", "tests"),
        ("did you test it?", "tests"),
        ("is it fast?", "answer"),
        ("テストしましたか？", "tests"),
        ("テストは通りますか？", "tests"),
        ("run it", "run"),
        ("ブラウザで開いて", "run"),
        ("no, undo that last one", "undo"),
        ("さっきの変更を取り消して", "undo"),
        ("hi", "talk"),
        ("y", "talk"),
        ("ありがとうございました", "talk"),
        ("hello, what can you do?", "about"),
        ("何ができますか？", "about"),
        ("what files have you changed?", "changes"),
        ("did you change anything in todo.py?", "changes"),
        ("今までに何を変更した？", "changes"),
        ("変更したファイルを教えて", "changes"),
        ("どのファイルを変更しましたか？", "changes"),
        ("make me a web shop with users and payments", "large"),
        ("i want a complete website with login", "large"),
        ("オンラインショップを全部作って", "large"),
        ("メルカリみたいなアプリを作ってください", "large"),
        ("make a todo list app", "change"),
        ("create messenger.py with a function send", "change"),
        ("make the payments page print the user", "change"),
        ("ログインのチェックを追加して", "change"),
        ("how do I make a web shop?", "answer"),
        ("なんでそうしたの？ありがとう、もういいです", "answer"),
        ("calc.pyを直して。お願いします", "change"),
        ("これは何？ 直して", "change"),
        ("助かりました。ありがとう！", "talk"),
        ("おつかれさま", "talk"),
        ("これ本当に動くの？", "tests"),
        ("does it work?", "tests"),
        ("ok leave it", "leave"),
        ("やっぱりやめておきます", "leave"),
        ("そのままでいいです", "leave"),
        ("dark mode please", None),
        ("in one line", None),
        ("", None),
        ("add a test. " * 40, None),
    ],
)
def test_J11_a_plain_wish_is_read_from_the_words(said: str, wish: str | None):
    assert plain_wish(said) == wish


@every_row(
    ("reason", "left"),
    [
        ("keep add, I changed my mind", True),
        ("no tests please", True),
        ("いや、やめて", True),
        ("call it HISTORY.md", False),
        ("put it under the other buttons", False),
        ("5回勝負で", False),
    ],
)
def test_G1_the_reason_of_a_no_may_say_that_nothing_is_wanted(reason: str, left: bool):
    assert leaves_it(reason) == left
