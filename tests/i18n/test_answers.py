"""A5, B6, I6: answers of users in both languages, understood alike in every interface."""

from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import CHOICES, ChooseWay, Consultation
from duckflow.i18n.answers import (
    is_end,
    is_go_on,
    is_pause,
    is_remark,
    is_stop,
    read_answer,
    read_choice,
)

YES = """
y|Y|yes| yes |ｙ|Ｙｅｓ|1|１|Yes.|Yes!|yes please|Yes, please.|sure|sure, go ahead|go ahead|ok
OK, do it|okay then|yes, go on with the plan|of course|please do
please|alright|sounds good|looks good|that's fine|lgtm
はい|はい。|はい、お願いします|お願いします|お願いします！|いいですよ|いいよ|うん、いいよ|もちろん|それでお願いします|どうぞ
ぜひお願いします|よろしくお願いします。|進めてください|承認します|ＯＫ
go for it|ship it|works for me|i agree|let's do it|looks good to me|yes, that's right|start|sure thing
that works|fine by me|k|kk|k do it|yea|cool, do it|nice, thanks
いいです|いいよー|おっけー|これでお願いします|この計画で進めてください|進めましょう|始めて|構いません|問題ないです
はーい|それでいいです|やりましょう|始めてください|かまいません|問題ありません|いいと思います|OKです|はい、この計画で進めてください
うん、それでいこう|じゃあそれで|だからいいって言ってるじゃん、進めて|いいって言ってるのに|それでいい|これでいい|ぜひ|完璧|ばっちりです|同意します|異議なし|いきましょう|適用して|書き込んでください|そのままで|そうしてください|おk
👍|👍🏽|🙆‍♀️|👌 お願いします|good|continue|why not|be my guest|I approve|accept|apply it
write it|yess|aye|exactly|correct
hai|なるほど、お願いします|あ、はい|わかりました、進めてください|いいんじゃないですか|それならお願いします|はい、ありがとうございます|そっか、じゃあお願い
"""
ALWAYS = """
a|always|Always|ａ|3|yes, always|always allow|いつも|常に|常に許可|はい、常に
stop asking|stop asking me for every little edit, just do it|Don't ask again.
please don't ask me, just go ahead
you don't have to ask for every change|no need to ask
いちいち聞かないで|もう確認は不要です|確認しなくていいのでどんどん進めて
"""
UNCLEAR = """
no?|n.py|no1|nothing|wait, what is a.py?
yes but smaller|sure, but rename it|yesterday|all of it|edit it|maybe|no problem|no worries, go ahead|yes?|ok?
why?|do|please do not know|y e s|yes/no|5|0|99|大丈夫です|結構です|はい、でも小さく|はい？
いや、いいよ|いえ、いいです|no, go ahead|CPUの強さは選べるようになりますか？|いいえ、お願いします
no thats fine, go ahead as is|no, that's fine as it is
わかりました|なるほど|あ|ありがとう|どういう意味ですか|うーん
not sure|not bad|no idea|それで|大丈夫|use another name|?|/help|...
stop asking and use tabs|don't ask me that, ask Ann|no need to ask about the name, it is b.py
"""
NO = {
    "n": "",
    "no": "",
    "No.": "",
    "iie": "",
    "2": "",
    "２": "",
    "no, wrong file": "wrong file",
    "No: wrong file": "wrong file",
    "n wrong file": "wrong file",
    "no use python 3": "no use python 3",
    "no network. use X instead": "no network. use X instead",
    "No new files please": "No new files please",
    "no　network": "no　network",
    "no, put it in src/app.py": "put it in src/app.py",
    "n 3つにして": "3つにして",
    "No (too long)": "(too long)",
    "stop, a.py is mine": "stop, a.py is mine",
    "nope": "",
    "no thanks": "",
    "No, thank you.": "",
    'n print "goodbye"': 'print "goodbye"',
    "いいえ、「さようなら」と表示して": "「さようなら」と表示して",
    "いいえ、表示は「さようなら」": "表示は「さようなら」",
    "no, (a) only": "(a) only",
    "no. use tabs.": "use tabs.",
    "stop please": "",
    "do not": "",
    "decline": "",
    "nooo": "",
    "反対": "",
    "必要ないです": "",
    "お断りします": "",
    "そうじゃない": "",
    "また今度": "",
    "反対側に置いて": "反対側に置いて",
    "wait a moment": "",
    "never mind": "",
    "undo that": "",
    "やっぱり元に戻して": "",
    "ちょっと待って": "",
    "ちょっと待ってください": "",
    "ストップ": "",
    "いらない": "",
    "いりません。": "",
    "やっぱりやめて": "",
    "いいえ、いりません": "",
    "stop": "",
    "not now": "",
    "forget it": "",
    "skip it": "skip it",
    "no, do it with argparse": "do it with argparse",
    "don't": "",
    "don’t touch it": "don’t touch it",
    "いいえ": "",
    "いいえ、別のファイルに": "別のファイルに",
    "いいえ 別のファイルに": "別のファイルに",
    "いいえ別のファイルに": "別のファイルに",
    "いや": "",
    "やめて": "",
    "やめて。": "",
    "やめて、別のにして": "やめて、別のにして",
    "違うファイルにして": "違うファイルにして",
}
EDITS = {
    "edit:ls": "ls",
    "edit: ls -la": "ls -la",
    "EDIT: a\nb\n": "a\nb\n",
    "e: x": "x",
    "編集：新しい": "新しい",
    "edit:": "",
    "edit:  two": " two",
}


def listed(table: str) -> list[str]:
    return [said for line in table.strip().split("\n") for said in line.split("|")]


def test_B6_what_is_clearly_a_yes_is_one_and_nothing_else():
    expected = {said: AnswerApproval(yes=True) for said in listed(YES)}
    expected |= {said: AnswerApproval(yes=True, always=True) for said in listed(ALWAYS)}
    expected |= {said: AnswerApproval(yes=False, reason=reason) for said, reason in NO.items()}
    expected |= {said: AnswerApproval(yes=True, edited=edited) for said, edited in EDITS.items()}
    wrong = {said: read_answer(said) for said, answer in expected.items() if read_answer(said) != answer}
    assert not wrong


def test_A5_what_is_unclear_is_no_answer():
    hostile = ["", "  ", "\n", "\x1b[A", "\x1b", "y\x00", "[A", "a=1", "y;rm", "a\u202e", "yes\u200b"]
    read = {said: read_answer(said) for said in (*listed(UNCLEAR), *hostile)}
    assert not {said: answer for said, answer in read.items() if answer is not None}


ASKED = Consultation(
    consultation_id="c1",
    kind="stagnation",
    situation="consultation.stagnation",
    choices=CHOICES["stagnation"],
)


def test_I6_a_choice_is_a_number_a_name_or_words_and_all_else_is_asked_again():
    expected = {
        "2": ("more_information", ""),
        " 2. ": ("more_information", ""),
        "2) look at b.py": ("more_information", "look at b.py"),
        "2: look at b.py": ("more_information", "look at b.py"),
        "２　b.py を見て": ("more_information", "b.py を見て"),
        "２、b.py を見て": ("more_information", "b.py を見て"),
        "go_on": ("go_on", ""),
        "GO_ON please": ("go_on", "please"),
        "2つ目のファイルを見て": ("", "2つ目のファイルを見て"),
        "2.5 seconds is too slow": ("", "2.5 seconds is too slow"),
        "look at b.py": ("", "look at b.py"),
        **dict.fromkeys(("5", "0", "９", "5. no", "12 go on", "", "  ", "."), None),
    }
    read = {said: read_choice(said, ASKED) for said in expected}
    wanted = {said: ChooseWay(choice=one[0], text=one[1]) if one else None for said, one in expected.items()}
    assert read == wanted


def test_C6_only_words_that_ask_for_nothing_else_stop_the_work():
    stops = "stop|Stop!|please stop|wait|wait a moment|hold on|cancel|that's enough, stop|enough"
    stops += "|ちょっと待って|ストップ|いらない|やめて|止めてください"
    others = (
        "stop using argparse|wait for the tests first|用語を待って|no, use b.txt|y|don't touch b.txt|stop?"
        "|enough tests now"
    )
    assert [one for one in stops.split("|") if not is_stop(one)] == []
    assert [one for one in others.split("|") if is_stop(one)] == []


def test_G1_a_stop_is_no_refusal_of_what_is_proposed():
    pauses = "stop|wait|hold on|not now|ちょっと待って|ストップ|少し待ってください|止めて|中断して"
    refusals = "だめ|いらない|不要です|却下|違います|しないで|don't|no|いいえ"
    pauses += "|やめとこう|あとでね|タンマ"
    refusals += "|嫌です|遠慮します|もういいです|今はいい"
    assert [one for one in pauses.split("|") if not is_pause(one)] == []
    assert [one for one in refusals.split("|") if is_pause(one)] == []


def test_G1_a_japanese_yes_is_understood_as_it_is_said():
    agreed = "おねがいしまーす|それで大丈夫です|やっちゃってください|そうですね、お願いします"
    agreed += "|書き込んでいいよ|いいっすよ|はーい"
    read = {said: read_answer(said) for said in agreed.split("|")}
    assert [said for said, answer in read.items() if answer is None or not answer.yes] == []
    for said in ("いや、いいよ", "大丈夫です", "結構です", "いい"):
        assert (read_answer(said), is_remark(said)) == (None, False), f"{said} means yes and no"
    for said in ("変更して", "後でテストも足して", "はい？"):
        assert (read_answer(said), is_remark(said)) == (None, True), f"{said} is for the model"


def test_C4_only_words_that_ask_for_nothing_else_go_on():
    resumes = "go on|Continue.|please continue|keep going|carry on with it"
    resumes += "|続けて|続けてください|再開して|続きをお願いします"
    others = "go on, but in Rust|continue with the tests|テストを続けて書いて|argparse にして|yes|stop"
    assert [one for one in resumes.split("|") if not is_go_on(one)] == []
    assert [one for one in others.split("|") if is_go_on(one)] == []


def test_M1_only_words_that_want_no_more_work_end_a_request():
    ends = """
    that's all, thanks|That's it.|ok that's all for now|I'm done|we're done here, thank you|let's stop here
    もう終わりでいい|もう終わりでいいです|これで終わりにして|終わりにしましょう|以上です、ありがとうございました|もういいです
    今日はここまで|もう大丈夫です、ありがとう|おしまい|もう十分です|これで終わり！|もういいや、ありがとう|じゃあ終わりで
    """
    goes_on = """
    that's all wrong|that's it, but add a test|終わりの処理を直して|以上のテストを追加して
    ここまでの変更をコミットして|いいです|大丈夫です
    もう一度|ありがとう|これでいい？|done?|I'm done with a.py, do b.py
    終わったら教えて|もういい感じにして|以上の件
    """
    wrong = [said for said in listed(ends) if not is_end(said)]
    wrong += [said for said in listed(goes_on) if is_end(said)]
    assert wrong == []
