"""Finds executable examples in a request: calls with their results, and text that a script prints.

They are only found here, not run. A request is text, not code: only calls of names defined in the changed
modules, with literal arguments, count; the evaluator judges everything else.
"""

import ast
import re
from collections.abc import Iterable, Iterator
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
_AFTER_NUMBER = lazy_regex(
    r"\s*(?:$|[^\w\s+*/%^~〜–-]|を(?:返|出|得)|が返|にな|です|とな|と等|と同"
    r"|(?:after|again|also|and|as|because|before|but|by|exactly|for|from|here|if|in|instead|is|must|not|on|please"
    r"|should|since|so|then|too|using|via|when|where|which|while|with|without)\b)"
)
"""Text that may follow a number. Others may count or compare: 3 items, 5 or more, 5以上."""
_NAME = lazy_regex(r"(?<![\w.])[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*\(", re.ASCII)
_METHOD = lazy_regex(r"\.[A-Za-z_]\w*\(", re.ASCII)
_PROMPT = lazy_regex(r"^[ \t]*>>> (?P<call>[^\n]+)\n(?P<result>[^\n]+)", re.MULTILINE)
_RAISES = lazy_regex(
    r"\s*`?\s*(?:(?:should|must|will|shall)\s+)?(?:raises?|throws?)\s+(?:an?\s+)?`?(?P<error>[A-Z]\w*)"
)
_RAISES_JA = lazy_regex(r"\s*`?\s*(?:は|で|なら|では)\s*`?(?P<error>[A-Z]\w*(?:Error|Exception)\w*)")
_DOUBT = lazy_regex(
    r"\b(?:currently|instead|wrongly|incorrectly|wrong|bug|but|not|never|no longer|today|at the moment"
    r"|used to|rather than|actually|fails?|failing|broken)\b|n't\b"
    r"|ではなく|なのに|現在|今は|のに|誤って|間違|バグ|ない|けど|が、",
    re.IGNORECASE,
)
_SENTENCE = lazy_regex(r"[.!?](?=\s|$)|[。！？\n]")

_PRINTS = lazy_regex(
    r"\b(?:prints?|outputs?|displays?)\s+(?:out\s+)?(?:just\s+|only\s+|exactly\s+)?"
    r"(?:the\s+(?:text|word|words|line|string|message)\s+)?"
    r"(?:(?P<quoted>`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'|“[^”\n]+”|「[^」\n]+」)"
    r"|(?P<bare>[A-Za-z][\w-]*[!]?)(?=\s*(?:[.,;。、]?\s*$|[.;。](?:\s|$))))",
    re.IGNORECASE | re.MULTILINE,
)
_PRINTS_JA = lazy_regex(
    r"(?P<quoted>`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'|「[^」\n]+」|『[^』\n]+』)\s*(?:という(?:文字列|文字)?)?\s*"
    r"(?:を|と)\s*(?:標準出力に|画面に)?\s*(?:表示|出力|プリント|印字|print)"
    r"|(?P<bare>[A-Za-z][\w-]*[!]?)\s*(?:を|と)\s*(?:標準出力に|画面に)?\s*(?:表示|出力|プリント|印字|print)"
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
        """The example as people would write it."""
        return f"{self.call} raises {self.expected}" if self.raises else f"{self.call} == {self.expected}"


class OutputExample(Frozen):
    """A script and the text it must print. Unquoted text may also be a description."""

    path: str
    program: str
    expected: str
    quoted: bool

    @property
    def name(self) -> str:
        """The example as people would write it."""
        return f"{self.path} prints {self.expected}"


def call_examples(request: str, path: str, source: str) -> tuple[CallExample, ...]:
    """Return the calls of names that `source` defines, with the results that the request states."""
    names = _defined(source)
    if not names:
        return ()
    text = request[:_LOOKED_AT]
    found = (*_prompted(text), *_said(text))
    examples = (
        CallExample(path=path, call=call, expected=expected, raises=raises)
        for call, expected, raises in found
        if _callable(call, names)
    )
    return _agreeing(examples)


def output_examples(request: str, path: str, source: str) -> tuple[OutputExample, ...]:
    """Return the output that a request states for a script. Scripts that read input are skipped."""
    program = SCRIPTS.get(PurePosixPath(path).suffix.lower())
    if program is None or _ASKS_FOR_INPUT.search(source):
        return ()
    if not any(name in request for name in (path, PurePosixPath(path).name)):
        return ()
    found: dict[str, OutputExample] = {}
    for sentence in _sentences(request[:_LOOKED_AT]):
        if _DOUBT.search(sentence):
            continue
        for match in (*_PRINTS.finditer(sentence), *_PRINTS_JA.finditer(sentence)):
            quoted = match["quoted"]
            expected = quoted[1:-1].strip() if quoted else match["bare"]
            if expected and "{" not in expected and "<" not in expected:
                found[expected] = OutputExample(
                    path=path, program=program, expected=expected, quoted=bool(quoted)
                )
    return tuple(found.values())[:MOST_EXAMPLES]


def has_doctests(source: str) -> bool:
    """Return whether a Python file contains examples."""
    return ">>> " in source


def printed(example: OutputExample, output: str) -> bool | None:
    """Return whether a script printed the expected text; None if that can't be decided."""
    if _plain(example.expected) in _plain(output):
        return True
    if example.quoted or not output.strip():
        return False
    # A bare word may be the output itself ("prints hello") or describe it ("prints primes"): only a near miss
    # of the word itself is certainly wrong.
    from difflib import SequenceMatcher  # noqa: PLC0415 - only for this

    lines = (_plain(line) for line in output.splitlines()[:50])
    near = (SequenceMatcher(None, _plain(example.expected), line).ratio() for line in lines)
    return False if max(near, default=0) >= 0.7 else None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in _SENTENCE.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _prompted(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the code after >>> in the text, with the line after it."""
    for match in _PROMPT.finditer(text):
        result = _literal(match["result"].strip())
        if result is not None:
            yield match["call"].strip(), result, False


def _said(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield calls whose result a sentence states."""
    for match in _NAME.finditer(text):
        if text[: match.start()].endswith(">>> "):
            continue
        end = _closing(text, match.end() - 1)
        while end is not None and (method := _METHOD.match(text, end)):
            end = _closing(text, method.end() - 1)
        if end is None or _DOUBT.search(_around(text, match.start(), end)):
            continue
        call, rest = text[match.start() : end], text[end : end + _LONGEST]
        if raised := _RAISES.match(rest) or _RAISES_JA.match(rest):
            yield call, raised["error"], True
        elif (says := _SAID.match(rest)) and (result := _leading_literal(rest[says.end() :])):
            yield call, result, False


def _around(text: str, start: int, end: int) -> str:
    """Return the sentence around a call, without the call; for a long one, only the nearby text."""
    before, after = text[max(0, start - _LONGEST) : start], text[end : end + _LONGEST]
    begin = max((match.end() for match in _SENTENCE.finditer(before)), default=0)
    stop = next((match.end() for match in _SENTENCE.finditer(after)), len(after))
    return f"{before[begin:]} {after[:stop]}"


def _closing(text: str, opening: int) -> int | None:
    """Return the position after the bracket that closes the one at `opening`, skipping strings."""
    depth, quote = 0, ""
    for place in range(opening, min(opening + _LONGEST, len(text))):
        letter = text[place]
        if quote:
            if letter == quote and text[place - 1] != "\\":
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return place + 1
    return None


def _leading_literal(text: str) -> str | None:
    """Return the longest literal at the beginning of a text; None for several values without brackets.

    These may be separate values, the rest of a sentence, or a number with separated thousands.
    """
    line = text.partition("\n")[0][:_LONGEST].strip()
    for end in range(len(line), 0, -1):
        here, rest = line[:end], line[end:]
        if rest and (here[-1].isalnum() or here[-1] in "_-+") and rest[0].isascii() and rest[0].isalnum():
            continue
        if here[-1].isdigit() and re.match(r"\.\d|[%*/^(]", rest):
            continue
        if here.rstrip().endswith((".", ",")) or not (literal := _literal(here.strip())):
            continue
        unsure = literal.startswith("(") and not line.startswith("(")
        unsure |= literal[-1].isdigit() and not _AFTER_NUMBER.match(rest)
        return None if unsure else literal
    return None


def _literal(text: str) -> str | None:
    text = text.strip().rstrip("`").strip()
    try:
        tree = ast.parse(text, mode="eval")
        ast.literal_eval(tree)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return {"true": "True", "false": "False", "null": "None"}.get(text)
    return ast.unparse(tree)


def _defined(source: str) -> frozenset[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def _callable(text: str, names: frozenset[str]) -> bool:
    """Return whether a text is a call of one of these names with only literals as arguments."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(tree, ast.Call) and _harmless(tree, names)


def _harmless(node: ast.expr, names: frozenset[str]) -> bool:
    if not isinstance(node, ast.Call):
        return _is_literal(node)
    match node.func:
        case ast.Name(id=name):
            known = name in names
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            known = name in names and not attribute.startswith("_")
        case ast.Attribute(value=ast.Call() as inner, attr=attribute):
            known = not attribute.startswith("_") and _harmless(inner, names)
        case _:
            known = False
    named = all(keyword.arg for keyword in node.keywords)
    values = (*node.args, *(keyword.value for keyword in node.keywords))
    return known and named and all(_harmless(one, names) for one in values)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _agreeing(examples: Iterable[CallExample]) -> tuple[CallExample, ...]:
    """Return each call once, without those with contradictory results; the evaluator judges these."""
    by_call: dict[str, set[tuple[str, bool]]] = {}
    kept: dict[str, CallExample] = {}
    for one in examples:
        by_call.setdefault(one.call, set()).add((one.expected, one.raises))
        kept[one.call] = one
    return tuple(one for call, one in kept.items() if len(by_call[call]) == 1)[:MOST_EXAMPLES]
