"""Finds executable examples in a request: calls with literal arguments, and text that a script prints."""

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex

MOST_EXAMPLES = 20

_LOOKED_AT = 20_000
_LONGEST = 300

_SAYS = (
    r"->|→|=>|⇒|==|＝＝"
    r"|(?:should|must|will|would|shall)\s+(?:return|give|yield|equal|be|evaluate\s+to)"
    r"|returns?|gives?|yields?|equals?|evaluates\s+to|is"
    r"|は|が|なら|で|の(?:戻り値|返り値|結果)は|を呼ぶと|を実行すると"
)
_SAID = lazy_regex(rf"\s*[`']?\s*(?:{_SAYS})\s*:?\s*`?\s*")
_RAISES = lazy_regex(
    r"\s*`?\s*(?:(?:(?:should|must|will|shall)\s+)?(?:raises?|throws?)\s+(?:an?\s+)?`?"
    r"|(?:は|で|なら|では)\s*`?(?=[A-Z]\w*(?:Error|Exception)))(?P<error>[A-Z]\w*)"
)
_CONDITION = lazy_regex(
    r"`?,?\s*(?:for|if|when|whenever|on|unless|in case|with|where|while)\b", re.IGNORECASE
)
_AFTER_NUMBER = lazy_regex(
    r"(?!\.\d)\s*(?:$|[^\w\s+*/%^~〜(–-]|を(?:返|出|得)|が返|にな|です|とな|と等|と同"
    r"|(?:after|again|also|and|as|because|before|but|by|exactly|for|from|here|if|in|instead|is|must|not|on|please"
    r"|should|since|so|then|too|using|via|when|where|which|while|with|without)\b)"
)
"""Text that may follow an expected number. Other text makes it a count: 3 items, 5 or more, 5以上."""
_NAME = lazy_regex(r"(?<![\w.])(?<!>>> )([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*\(", re.ASCII)
_PROMPT = lazy_regex(r"^[ \t]*>>> (?P<call>[^\n]+)\n(?P<result>[^\n]+)", re.MULTILINE)
_DOUBT = lazy_regex(
    r"\b(?:currently|instead|wrongly|incorrectly|wrong|bug|but|not|never|no longer|today|at the moment"
    r"|used to|rather than|actually|fails?|failing|broken)\b|n't\b"
    r"|ではなく|なのに|現在|今は|のに|誤って|間違|バグ|ない|けど|が、",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_regex(r"(?<=[.!?])(?=\s|$)|(?<=[。！？\n])")

_QUOTED = r"(?P<quoted>`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'|“[^”\n]+”|「[^」\n]+」|『[^』\n]+』)"
_BARE = r"(?P<bare>[A-Za-z][\w-]*!?)"
_PRINTS = lazy_regex(
    r"\b(?:prints?|outputs?|displays?)\s+(?:out\s+)?(?:just\s+|only\s+|exactly\s+)?"
    r"(?:the\s+(?:text|word|words|line|string|message)\s+)?"
    rf"(?:{_QUOTED}|{_BARE}(?=\s*(?:[.,;。、]?\s*$|[.;。](?:\s|$))))",
    re.IGNORECASE | re.MULTILINE,
)
_PRINTS_JA = lazy_regex(
    rf"(?:{_QUOTED}\s*(?:という(?:文字列|文字)?)?|{_BARE})\s*(?:を|と)\s*(?:標準出力に|画面に)?\s*"
    r"(?:表示|出力|プリント|印字|print)"
)
SCRIPTS = {".py": "python", ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl"}
"""Program that runs a script, by its suffix."""

_ASKS_FOR_INPUT = lazy_regex(
    r"\binput\s*\(|\bsys\.(?:stdin|argv)\b|\bread\s+-|\bprocess\.(?:stdin|argv)\b|argparse"
)


class CallExample(Frozen):
    """A call into a Python module and its expected result."""

    path: str
    call: str
    expected: str
    """A literal, or the name of an error if `raises`."""
    raises: bool = False

    @property
    def name(self) -> str:
        """The example in the form in which people write it."""
        return f"{self.call} raises {self.expected}" if self.raises else f"{self.call} == {self.expected}"


class OutputExample(Frozen):
    """A script and the text that it must print. Text without quotes may also describe the output."""

    path: str
    program: str
    expected: str
    quoted: bool

    @property
    def name(self) -> str:
        """The example in the form in which people write it."""
        return f"{self.path} prints {self.expected}"


def call_examples(request: str, path: str, source: str) -> tuple[CallExample, ...]:
    """Return examples that call names defined in `source`, unless their results contradict each other."""
    names = _defined(source)
    text = request[:_LOOKED_AT]
    found: dict[str, set[CallExample]] = {}
    for call, expected, raises in (*_prompted(text, names), *_stated(text, names)) if names else ():
        one = CallExample(path=path, call=call, expected=expected, raises=raises)
        found.setdefault(call, set()).add(one)
    return tuple(one for same in found.values() if len(same) == 1 for one in same)[:MOST_EXAMPLES]


def output_examples(request: str, path: str, source: str) -> tuple[OutputExample, ...]:
    """Return the output that a request expects of a script. Scripts that read input are skipped."""
    program = SCRIPTS.get(PurePosixPath(path).suffix.lower())
    if program is None or _ASKS_FOR_INPUT.search(source):
        return ()
    if not any(name in request for name in (path, PurePosixPath(path).name)):
        return ()
    found: dict[str, OutputExample] = {}
    for sentence in _SENTENCE_END.split(request[:_LOOKED_AT]):
        doubtful = _DOUBT.search(sentence) is not None
        for match in () if doubtful else (*_PRINTS.finditer(sentence), *_PRINTS_JA.finditer(sentence)):
            quoted = bool(match["quoted"])
            text = match["quoted"][1:-1].strip() if quoted else match["bare"]
            if text and not {"{", "<"}.intersection(text):
                found[text] = OutputExample(path=path, program=program, expected=text, quoted=quoted)
    return tuple(found.values())[:MOST_EXAMPLES]


def printed(example: OutputExample, output: str) -> bool | None:
    """Return whether a script printed the expected text; None if that can't be decided."""
    if _plain(example.expected) in _plain(output):
        return True
    if example.quoted or not output.strip():
        return False
    # A word without quotes may be the output itself ("prints hello") or describe it ("prints primes"). So the
    # output is only certainly wrong if it nearly equals the word.
    from difflib import SequenceMatcher  # noqa: PLC0415 - only for this

    lines = (_plain(line) for line in output.splitlines()[:50])
    near = (SequenceMatcher(None, _plain(example.expected), line).ratio() for line in lines)
    return False if max(near, default=0) >= 0.7 else None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _prompted(text: str, names: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    for match in _PROMPT.finditer(text):
        call, result = match["call"].strip(), _literal(match["result"])
        if result is not None and _is_call(call, names):
            yield call, result, False


def _stated(text: str, names: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    for match in _NAME.finditer(text):
        call = _call_at(text, match.start(), names) if match[1] in names else ""
        end = match.start() + len(call)
        if not call or _DOUBT.search(_around(text, match.start(), end)):
            continue
        rest = text[end : end + _LONGEST]
        if raised := _RAISES.match(rest):
            # "total() raises ValueError for a negative price" names a function and calls nothing.
            if not (call.endswith("()") and _CONDITION.match(rest[raised.end() :])):
                yield call, raised["error"], True
        elif (says := _SAID.match(rest)) and (result := _leading_literal(rest[says.end() :])):
            yield call, result, False


def _call_at(text: str, start: int, names: Collection[str]) -> str:
    near = text[start : start + _LONGEST]
    ends = (end for end in range(len(near), 0, -1) if near[end - 1] == ")")
    return next((near[:end] for end in ends if _is_call(near[:end], names)), "")


def _around(text: str, start: int, end: int) -> str:
    before, after = text[max(0, start - _LONGEST) : start], text[end : end + _LONGEST]
    begin = max((match.end() for match in _SENTENCE_END.finditer(before)), default=0)
    stop = next((match.end() for match in _SENTENCE_END.finditer(after)), len(after))
    return f"{before[begin:]} {after[:stop]}"


def _leading_literal(text: str) -> str | None:
    """Return the literal at the start of a text. None if it is part of more, as in "1,000" or "3 items"."""
    line = text.partition("\n")[0][:_LONGEST].strip()
    for end in range(len(line), 0, -1):
        here, rest = line[:end], line[end:]
        literal = None if here.rstrip().endswith((".", ",")) else _literal(here)
        if literal is not None:
            several = literal.startswith("(") and not line.startswith("(")
            part_of_word = here[-1].isalnum() and rest[:1].isascii() and rest[:1].isalnum()
            counts = literal[-1].isdigit() and not _AFTER_NUMBER.match(rest)
            return None if several or part_of_word or counts else literal
    return None


def _literal(text: str) -> str | None:
    text = text.strip().rstrip("`").strip()
    tree = _parse(text)
    if tree is None or not _is_literal(tree):
        return {"true": "True", "false": "False", "null": "None"}.get(text)
    return ast.unparse(tree)


def _parse(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _defined(source: str) -> frozenset[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def _is_call(text: str, names: Collection[str]) -> bool:
    """Return whether a text is a call of one of these names with only literals as arguments."""
    tree = _parse(text)
    return isinstance(tree, ast.Call) and _harmless(tree, names)


def _harmless(node: ast.expr, names: Collection[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            known = name in names
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)):
            known = name in names and not attribute.startswith("_")
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr=attribute)):
            known = not attribute.startswith("_") and _harmless(inner, names)
        case _:
            return _is_literal(node)
    values = (*node.args, *(keyword.value for keyword in node.keywords))
    return known and all(one.arg for one in node.keywords) and all(_harmless(one, names) for one in values)
