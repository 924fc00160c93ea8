"""Fits a model's output to the expected form: repairs unambiguous faults, and reports the others (A6).

Pydantic finds the faults. Each unambiguous fault is repaired in place, then everything is validated again.
"""

import copy
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.reading.faults import list_faults, model_at
from duckflow.domain.text import letters_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T", bound=BaseModel)

_PASSES = 8
"""Largest number of rounds: inner faults are found only once the outer value is valid."""
_UNREADABLE = object()
_NUMBER = r"\d++(?:\.\d++)?+"
_SHARE = lazy_regex(rf"[^\w-]*({_NUMBER})\s*(?:(%)|(?:/|of)\s*({_NUMBER}))?(?!\w)")
_QUOTED = lazy_regex(r"'([^']*)'")
_SHARES = {
    **dict.fromkeys(("certain", "full", "total"), 1.0),
    **dict.fromkeys(("high", "strong", "高"), 0.9),
    **dict.fromkeys(("medium", "moderate", "fair", "中"), 0.6),
    **dict.fromkeys(("low", "weak", "低"), 0.3),
}
_SHARE_WORD = lazy_regex("|".join(rf"\b{word}\b" if word.isascii() else word for word in _SHARES))


class Fitted(NamedTuple, Generic[T]):
    """Fitted value, or what is left of it without the faulty parts (None if nothing), and the faults."""

    value: T | None
    faults: tuple[str, ...] = ()


def fit(shape: type[T], data: Mapping[str, Any], line_arguments: Collection[str] | None = None) -> Fitted[T]:
    """Read `data` as `shape`.

    In an answer, unknown fields are dropped, and any text may be a list of lines. In tool arguments, only the
    texts named in `line_arguments` may be lists; other lists and unknown names are faults.
    """
    mended: dict[str, Any] = copy.deepcopy(dict(data))
    mending = _Mending(shape, line_arguments)
    unknown: list[str] = []
    passes = 0
    while True:
        try:
            return Fitted(shape.model_validate(mended))
        except ValidationError as exc:
            faults = exc.errors(include_url=False)
        passes += 1
        unknown += list_faults([fault for fault in faults if fault["type"] == "extra_forbidden"], shape)
        # Go backwards, so that removing a list item does not shift the positions of later repairs.
        count = sum(mending.mend(mended, fault) for fault in reversed(faults))
        if passes > _PASSES or not count:
            break
    found = list_faults(faults, shape)
    if line_arguments is None and any(fault["type"] in ("missing", "value_error") for fault in faults):
        found += unknown  # A missing field may have been given under another name.
    return Fitted(_rest(shape, mended, faults), tuple(found))


def share_of(value: object) -> float | None:
    """Return the share from 0 to 1 that is meant by a number, a percentage, or a word such as "high"."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _as_share(float(value))
    if not isinstance(value, str):
        return None
    said = unicodedata.normalize("NFKC", value).replace(",", ".").casefold()
    if number := _SHARE.match(said):
        amount, percent, whole = number.groups()
        if not percent and not whole:
            return _as_share(float(amount))
        part, all_of_it = float(amount), float(whole or 100)
        return part / all_of_it if 0 < all_of_it >= part else None
    word = _SHARE_WORD.search(said)
    return _SHARES[word.group()] if word else None


def word_of(value: object, words: Iterable[str]) -> str | None:
    """Return the word that is meant, ignoring case and spacing; None if there is no match."""
    letters = letters_of(unicodedata.normalize("NFKC", value)) if isinstance(value, str) else ""
    return next((word for word in words if letters and letters_of(word) == letters), None)


def as_text(value: object) -> str:
    """Convert a value to text: a list of lines is joined, anything else becomes JSON."""
    if isinstance(value, str):
        return value
    lines = _lines(value)
    return json.dumps(value, ensure_ascii=False, default=str) if lines is None else lines


class _Mending:
    def __init__(self, shape: type[BaseModel], line_arguments: Collection[str] | None) -> None:
        self._shape = shape
        self._answer = line_arguments is None
        self._line_arguments = line_arguments or ()

    def mend(self, data: dict[str, Any], fault: "ErrorDetails") -> bool:
        loc, value = fault["loc"], fault["input"]
        holder, key = _place(data, loc)
        if holder is None or fault["type"] == "missing" or holder[key] is not value:
            return False
        if value is None or (fault["type"] == "extra_forbidden" and self._answer):
            del holder[key]
            return True
        meant = self._meant(fault, loc, value)
        if meant is _UNREADABLE:
            return False
        holder[key] = meant
        return True

    def _meant(self, fault: "ErrorDetails", loc: tuple[int | str, ...], value: object) -> object:
        match fault["type"]:
            case "string_type":
                return self._text(value, next(str(part) for part in reversed(loc) if isinstance(part, str)))
            case "tuple_type" | "list_type":
                return _listed(value)
            case "model_type" | "dict_type":
                return self._object(value, loc)
            case "literal_error" | "enum":
                return _word_or_number(value, str(fault.get("ctx", {}).get("expected", "")))
            case "float_parsing" | "less_than_equal" if self._is_share(loc):
                share = share_of(value)
                return _UNREADABLE if share is None else share
            case _:
                return _UNREADABLE

    def _text(self, value: object, name: str) -> object:
        if isinstance(value, bool):
            return _UNREADABLE
        if isinstance(value, int) or (isinstance(value, float) and self._answer):
            return str(value)
        if self._answer and isinstance(value, dict) and len(cast("dict[str, object]", value)) == 1:
            (inner,) = cast("dict[str, object]", value).values()
            return inner if isinstance(inner, str) else _UNREADABLE
        lines = _lines(cast("object", value)) if self._answer or name in self._line_arguments else None
        return _UNREADABLE if lines is None else lines

    def _object(self, value: object, loc: tuple[int | str, ...]) -> object:
        if not isinstance(value, str):
            return _UNREADABLE
        if value.lstrip().startswith(("{", "[")):
            read = _json(value)
            return cast("object", read) if isinstance(read, dict) else _UNREADABLE
        fields = model_at(self._shape, loc).model_fields
        required = [name for name, field in fields.items() if field.is_required()]
        alone = self._answer and len(required) == 1 and fields[required[0]].annotation is str
        return {required[0]: value} if alone and loc else _UNREADABLE

    def _is_share(self, loc: tuple[int | str, ...]) -> bool:
        field = model_at(self._shape, loc[:-1]).model_fields.get(str(loc[-1]))
        return field is not None and any(getattr(limit, "le", None) == 1 for limit in field.metadata)


def _place(data: dict[str, Any], loc: tuple[int | str, ...]) -> tuple[Any, Any]:
    """Return the container and the key of the value at this path; (None, None) if there is no such path."""
    holder: Any = data
    for part in loc[:-1]:
        if not _has(holder, part):
            return None, None
        holder = holder[part]
    return (holder, loc[-1]) if loc and _has(holder, loc[-1]) else (None, None)


def _has(holder: object, key: int | str) -> bool:
    if isinstance(holder, dict):
        return key in holder
    return isinstance(holder, list) and isinstance(key, int) and key < len(cast("list[object]", holder))


def _lines(value: object) -> str | None:
    if not isinstance(value, list):
        return None
    lines = cast("list[object]", value)
    if not all(isinstance(line, str | int | float) and not isinstance(line, bool) for line in lines):
        return None
    texts = [str(line) for line in lines]
    ending = "\n" if texts and texts[-1].endswith("\n") else ""
    return "\n".join(text.removesuffix("\n") for text in texts) + ending


def _listed(value: object) -> object:
    if isinstance(value, str):
        read = _json(value)
        if isinstance(read, list):
            return cast("object", read)
        return [value] if value.strip() else []
    return [cast("object", value)] if isinstance(value, dict | int | float) else _UNREADABLE


def _json(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key stands twice")
    return read


def _word_or_number(value: object, expected: str) -> object:
    word = word_of(value, _QUOTED.findall(expected))
    if word is not None:
        return word
    number = str(value).strip()
    return int(number) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", number) else _UNREADABLE


def _as_share(number: float) -> float | None:
    """Return a number as a share, reading numbers above 10 as percentages. None from 1 to 10: ambiguous."""
    if 0 <= number <= 1:
        return number
    return number / 100 if 10 < number <= 100 else None


def _rest(shape: type[T], data: dict[str, Any], faults: Sequence["ErrorDetails"]) -> T | None:
    """Return the value without its faulty items and fields, so that what is left can be validated."""
    paths = [_item_path(fault["loc"]) for fault in reversed(faults)]
    for path in dict.fromkeys(paths):
        holder, key = _place(data, path)
        if holder is not None:
            del holder[key]
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None


def _item_path(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the path of the outermost list item that contains a fault, or of the field."""
    ends = next((place for place, part in enumerate(loc, start=1) if isinstance(part, int)), 1)
    return loc[:ends]
