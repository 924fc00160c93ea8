"""Side questions: a request's requirements, how far they are met, what is missing, why it failed (K1)."""

from collections.abc import Iterable, Sequence
from typing import Literal, cast, get_args

from pydantic import Field, field_validator

from duckflow.domain.decision import TALK, TaskProfile
from duckflow.domain.errors import BadAnswer
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ChatMessage, JsonSchema, ModelRequest, ModelTraits
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.reading.fitting import word_of
from duckflow.domain.text import cut, head_and_tail, one_line
from duckflow.domain.work.objective import (
    REPLY,
    AsksFor,
    EvaluationCase,
    Evidence,
    Priority,
    RequirementItem,
    SatisfactionEvaluation,
    Share,
    ShownPicture,
)
from duckflow.prompts.evidence import harmless
from duckflow.prompts.questions import MOST_EVIDENCE, listed, question_request, spoken_text, whole_request
from duckflow.prompts.sections import object_schema
from duckflow.prompts.templates import template
from duckflow.services.questions import AskedModel, Question

MOST_REQUIREMENTS = 12
MOST_MISSING, MOST_LINES = 8, 5
MOST_FIXES = 4

_ADDED = (
    "{since} the user has said:\n{said}\n\nList all requirements as they are now: repeat those that still "
    "hold word for word, change what these words correct, leave out what they drop, add what they ask for. "
    'Only if they ask for something else instead of the request, list that alone, with "replaces": true.'
)

_LINE, _CAUSE = 300, 1_000
_NUMBER = lazy_regex(r"\A\s*(?:[-*•]|\(?\d{1,2}[.):])\s+")
_ANSWER = lazy_regex(r"\A\((?i:answer|回答)\)\s*|\s*\((?i:answer|回答)\)(?=\s*(?:\([123]\))?\Z)")
_PRIORITY = lazy_regex(r"\A\((?:priority )?([123])\)\s*|\s*\((?:priority )?([123])\)\s*\Z")


class RequirementDraft(Frozen):
    """One requirement as a model writes it."""

    requirement: str
    priority: Priority = 1
    asks_for: AsksFor | None = None


class RequirementList(Frozen):
    """Requirements and task profile of a request, as a model writes them."""

    requirements: tuple[RequirementDraft, ...]
    profile: TaskProfile | None = None
    replaces: bool = False
    failures_accepted: bool = False

    @field_validator("profile", mode="before")
    @classmethod
    def _known_profile(cls, value: object) -> object:
        return word_of(value, get_args(TaskProfile))


class FoundRequirements(Frozen):
    """Requirements of a request and its task profile, which is None if no model named one."""

    requirements: tuple[RequirementItem, ...]
    profile: TaskProfile | None = None
    replaces: bool = False
    """True if the user's last words ask for something else instead of the earlier request."""
    failures_accepted: bool = False
    """True if the user said that tests may fail for now."""


def extract_task_requirements(
    request: str,
    summary: str = "",
    known: Sequence[RequirementItem] = (),
    added: str = "",
    *,
    stopped: bool = False,
) -> Question[RequirementList, FoundRequirements]:
    """Ask for the requirements of a request. Without an answer, the request is the only requirement (J1).

    With `known` requirements, ask how the words that the user has `added` since change them (C6).
    `stopped`: the user stopped the work before these words, which may ask for something else.
    """
    about = spoken_text(summary)
    if added:
        about += [
            *listed("Requirements so far:", (one.requirement for one in known)),
            _ADDED.format(
                since="The user stopped this work. After that" if stopped else "Since then", said=added
            ),
        ]
    return Question(
        asked=AskedModel(tier="fast", output="RequirementList"),
        prompt=lambda traits: question_request(
            "RequirementList", traits, template("requirements"), about, request
        ),
        shape=RequirementList,
        check=_problems,
        read=lambda answer: FoundRequirements(
            requirements=_items(answer.requirements) or plain_requirements(request),
            profile=answer.profile,
            replaces=answer.replaces,
            failures_accepted=answer.failures_accepted,
        ),
        otherwise=lambda: FoundRequirements(requirements=plain_requirements(request)),
    )


def plain_requirements(request: str) -> tuple[RequirementItem, ...]:
    """Return the request as its only requirement, if it can't or need not be divided."""
    return (RequirementItem(requirement=whole_request(request)),)


def named_requirements(lines: Iterable[str]) -> tuple[RequirementItem, ...]:
    """Read requirements from lines. A line may start with a number, and have a priority at either end.

    So may the mark of a requirement that the reply itself answers.
    """
    drafts: list[RequirementDraft] = []
    for line in lines:
        whole = _NUMBER.sub("", line, count=1).strip()
        text, marks = _ANSWER.subn("", whole)
        marked = _PRIORITY.search(text)
        priority = cast("Priority", int(marked[1] or marked[2])) if marked else 1
        asks_for: AsksFor | None = "information" if marks else None
        words = _PRIORITY.sub("", text, count=1)
        drafts.append(RequirementDraft(requirement=words, priority=priority, asks_for=asks_for))
    return _items(drafts)


def _problems(answer: RequirementList) -> Iterable[str]:
    asks_nothing = not answer.requirements and answer.profile in TALK  # thanks, for example
    if not asks_nothing and not any(draft.requirement.strip() for draft in answer.requirements):
        yield "`requirements` needs at least one, and none may be empty"


def _items(drafts: Iterable[RequirementDraft]) -> tuple[RequirementItem, ...]:
    kept: dict[str, RequirementItem] = {}
    for draft in drafts:
        text = one_line(draft.requirement, _LINE)
        if text:
            item = RequirementItem(requirement=text, priority=draft.priority, asks_for=draft.asks_for)
            kept.setdefault(text.casefold(), item)
    most = sorted(kept.values(), key=lambda item: item.priority)[:MOST_REQUIREMENTS]
    return tuple(item for item in kept.values() if item in most)


class ScoreDraft(Frozen):
    """The score of one requirement as an evaluator writes it."""

    requirement: str
    score: Share
    evidence: tuple[str, ...] = ()
    asks_for: AsksFor | None = None
    """Kind of result that the requirement asks for, if the evaluator is the first to name it."""

    @field_validator("asks_for", mode="before")
    @classmethod
    def _known_kind(cls, value: object) -> object:
        return word_of(value, get_args(AsksFor))


class VerdictDraft(Frozen):
    """A verdict as an evaluator writes it; its shape is that of SatisfactionEvaluation in the prompts."""

    requirement_scores: tuple[ScoreDraft, ...] = Field(max_length=100)
    missing_aspects: tuple[str, ...] = ()
    quality_assessment: str = ""
    completion_recommendation: bool | None = None


def evaluate_task_satisfaction(
    case: EvaluationCase, earlier: VerdictDraft | None = None, objections: Sequence[str] = ()
) -> Question[VerdictDraft, VerdictDraft | None]:
    """Ask for a verdict, which is None if it can't be read. The program computes the total score (J2).

    With `earlier`, ask for that verdict again, because of the `objections` to it.
    """

    def prompt(traits: ModelTraits) -> ModelRequest:
        request = satisfaction_request(traits, case)
        return _asking_again(request, earlier, objections) if earlier is not None else request

    return Question(
        asked=AskedModel(tier="evaluator", output="SatisfactionEvaluation", effort="high", small=True),
        prompt=prompt,
        shape=VerdictDraft,
        read=lambda draft: draft,
        otherwise=lambda: None,
        covers=BadAnswer,
    )


def _asking_again(request: ModelRequest, earlier: VerdictDraft, objections: Sequence[str]) -> ModelRequest:
    listed = "\n".join(f"- {one}" for one in objections)
    told = f"This verdict can't be used as it is:\n{listed}\nGive the corrected verdict, complete."
    again = (
        ChatMessage(role="assistant", text=earlier.model_dump_json()),
        ChatMessage(role="user", text=f"{told}\n\nOutput: {request.output}"),
    )
    return replace(request, messages=request.messages + again)


class MissingItem(Frozen):
    """One thing that is lacking."""

    what: str
    priority: Priority = 1


class MissingInfoAnalysis(Frozen):
    """Missing parts, constraints that were found, and alternatives."""

    missing: tuple[MissingItem, ...] = ()
    constraints: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()


def extract_missing_information(
    case: EvaluationCase, evaluation: SatisfactionEvaluation
) -> Question[MissingInfoAnalysis, MissingInfoAnalysis]:
    """Ask what is missing after a verdict. Without an answer, use the verdict alone (J4)."""
    scores = [
        f"{place}. {one.requirement}: {one.score:.2f}"
        for place, one in enumerate(evaluation.requirement_scores, start=1)
    ]
    about = [
        "Requirements and how far each is met\n" + "\n".join(scores),
        *listed("Found missing", evaluation.missing_aspects),
    ]

    def read(answer: MissingInfoAnalysis) -> MissingInfoAnalysis:
        found = _tidy(answer)
        return found if found.missing else replace(found, missing=plain_missing(evaluation).missing)

    return Question(
        asked=AskedModel(tier="fast", output="MissingInfoAnalysis"),
        prompt=lambda traits: question_request(
            "MissingInfoAnalysis", traits, template("missing"), about, case.request, case.evidence
        ),
        shape=MissingInfoAnalysis,
        read=read,
        otherwise=lambda: plain_missing(evaluation),
    )


def plain_missing(evaluation: SatisfactionEvaluation) -> MissingInfoAnalysis:
    """Return what the verdict itself says is missing."""
    aspects = [MissingItem(what=text) for text in evaluation.missing_aspects]
    unmet = [
        MissingItem(what=one.requirement, priority=one.priority)
        for one in evaluation.requirement_scores
        if one.score < 1 and not aspects
    ]
    return _tidy(MissingInfoAnalysis(missing=(*aspects, *unmet)))


def _tidy(found: MissingInfoAnalysis) -> MissingInfoAnalysis:
    missing = [replace(one, what=one_line(one.what, _LINE)) for one in found.missing if one.what.strip()]
    return MissingInfoAnalysis(
        missing=tuple(sorted(missing, key=lambda one: one.priority)[:MOST_MISSING]),
        constraints=tuple(dict.fromkeys(_lines(found.constraints)))[:MOST_LINES],
        alternatives=tuple(dict.fromkeys(_lines(found.alternatives)))[:MOST_LINES],
    )


def _lines(texts: Iterable[str]) -> list[str]:
    return [one_line(text, _LINE) for text in texts if text.strip()]


class FailureAnalysis(Frozen):
    """The cause of a failure, and what to do about it, most promising first."""

    cause: str
    fixes: tuple[str, ...] = ()


def analyze_execution_failure(
    request: str,
    failures: Sequence[str],
    evidence: Sequence[Evidence],
    kind: Literal["failure", "second_opinion"] = "failure",
) -> Question[FailureAnalysis, FailureAnalysis | None]:
    """Ask why these things failed, or for a second opinion; the answer is None if no model answers."""
    told = listed("What failed or is missing, oldest first", failures)
    return Question(
        asked=AskedModel(tier="evaluator", output="FailureAnalysis", effort="high"),
        prompt=lambda traits: question_request(
            "FailureAnalysis", traits, template(kind), told, request, evidence
        ),
        shape=FailureAnalysis,
        check=lambda analysis: () if analysis.cause.strip() else ("`cause` is empty",),
        read=lambda analysis: FailureAnalysis(
            cause=one_line(analysis.cause, _CAUSE), fixes=tuple(_lines(analysis.fixes)[:MOST_FIXES])
        ),
        otherwise=lambda: None,
    )


_SOURCES = 30_000
"""Token limit of the evidence if the reply itself is judged, because nothing was changed or run."""

_REPLY, _SMALL_REPLY = 12_000, 1_200


def satisfaction_request(traits: ModelTraits, case: EvaluationCase) -> ModelRequest:
    """Build the request for a verdict."""
    reply = harmless(head_and_tail(case.reply.strip(), _SMALL_REPLY if traits.small else _REPLY))
    pictures = case.pictures if traits.sees and not traits.small else ()
    about = [
        f"[{REPLY}] What the user was told:\n{reply or '(nothing)'}",
        "Requirements\n" + "\n".join(_numbered(case, with_priority=not traits.small)),
        _situation(case),
        *_picture_list(pictures),
    ]
    system = template("satisfaction_small" if traits.small else "satisfaction")
    request = question_request(
        "SatisfactionEvaluation",
        traits,
        system,
        about,
        case.request,
        case.evidence,
        most_evidence=_SOURCES if case.information else MOST_EVIDENCE,
        pictures=[one.picture for one in pictures],
    )
    return replace(request, answer_schema=small_verdict_schema(case)) if traits.small else request


def _picture_list(pictures: Sequence[ShownPicture]) -> list[str]:
    """Return a section that names the pictures of the request in the order in which they come."""
    names = [
        f"{place}. {harmless(one_line(one.picture.path, _LINE))}, "
        + (f"shown by [{one.evidence_id}]" if one.evidence_id else "from the user")
        for place, one in enumerate(pictures, start=1)
    ]
    return ["\n".join(["You see these pictures, in this order:", *names])] if names else []


def small_verdict_schema(case: EvaluationCase) -> JsonSchema:
    """Return the schema of a short verdict: what is missing, then one of three scores per requirement."""
    count = max(len(case.requirements), 1)
    ids = [one.evidence_id for one in case.evidence if one.current and one.supports != "nothing"]
    answers = any(one.asks_for == "information" for one in case.requirements)
    ids = [*ids, REPLY] if case.information or answers or not ids else ids
    score = object_schema(
        requirement={"enum": [str(place) for place in range(1, count + 1)]},
        evidence={"type": "array", "items": {"enum": ids}, "maxItems": 2},
        score={"enum": [0, 0.5, 1]},
    )
    return object_schema(
        missing_aspects={"type": "array", "items": {"type": "string"}, "maxItems": 2},
        requirement_scores={"type": "array", "items": score, "minItems": count, "maxItems": count},
        quality_assessment={"enum": ["good", "fair", "poor"]},
        completion_recommendation={"type": "boolean"},
    )


def _numbered(case: EvaluationCase, *, with_priority: bool) -> Iterable[str]:
    for place, one in enumerate(case.requirements, start=1):
        whole = one.requirement == whole_request(case.request)
        priority = f" (priority {one.priority})" if with_priority else ""
        yield f"{place}. {'the request as a whole' if whole else one.requirement}{priority}"


_ANSWERED = f'judge it there, with the id "{REPLY}" and "asks_for": "information" in the entry.'


def _situation(case: EvaluationCase) -> str:
    if case.information:
        lines = ["Nothing was changed or run: judge the reply itself. Its sources are the evidence."]
    else:
        done = "Files were changed" if case.changed else "Commands were run, and no file was changed"
        lines = [f"{done}: judge the evidence. The reply is only a claim."]
        if any(one.asks_for != "change" for one in case.requirements):
            lines.append(f"Where a requirement asks to be told something, the reply is the work: {_ANSWERED}")
    if case.verification == "failed":
        lines.append("A required check failed.")
    if case.only_comments:
        lines.append("Only comments and docstrings were changed, so the code does the same as before.")
    if case.missed:
        lines.append(f"Named in the request, but not changed: {cut(', '.join(case.missed), _LINE)}")
    if accepted := [one.name for one in case.checks if one.accepted]:
        names = cut(", ".join(accepted), _LINE)
        lines.append(f"These fail, and the user said that they may for now, which lowers no score: {names}")
    failed = [one for one in case.checks if one.state == "failed" and not one.accepted]
    if new := [one.name for one in failed if not one.before]:
        lines.append(f"Checks that failed: {cut(', '.join(new), _LINE)}")
    if unknown := [one.name for one in failed if not one.before and not one.compared and not one.binding]:
        names = cut(", ".join(unknown), _LINE)
        lines.append(f"It is not known whether these failed before the request, too: {names}")
    if old := [one.name for one in failed if one.before]:
        names = cut(", ".join(old), _LINE)
        lines.append(f"Failed the same way before the request, so only a fix was asked for counts: {names}")
    if case.unwanted:
        lines.append("The user did not want this done, which lowers no score:")
        lines += [f"- {cut(one, _LINE)}" for one in case.unwanted]
    if case.failing:
        lines.append(f"Failed, with no success since: {cut(', '.join(case.failing), _LINE)}")
    return "\n".join(lines)
