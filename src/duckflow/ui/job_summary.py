"""Summary of one run as Markdown, for the page of a CI job: outcome, requirements, checks, files, reply."""

import re
import shlex
from collections.abc import Iterator, Sequence

from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.events import StoredEvent
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import cut, one_line, percent
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import RequirementItem
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import harmless, on_one_line
from duckflow.ui.transcript import fenced
from duckflow.ui.views.events import Describer, EventDescription, error_text
from duckflow.ui.views.goal import MET, PARTLY

_TITLE, _CELL, _LABEL = 100, 300, 60
_MOST_FILES, _MOST_CHECKS, _MOST_LABELS = 50, 30, 3
_LONGEST = 200_000
"""Largest size of a reply or question in characters. GitHub accepts summaries of 1 MiB."""

_MARKUP = lazy_regex(r"([\\`*_{}\[\]<>#|~!])")
_CODE = lazy_regex(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})")
_NO_MENTION = "@<!-- -->"
_ACTIVE = lazy_regex(r"<|!(?=\[)|@(?=\w)")


class JobSummary:
    """Collects the events of a run. `flags` are those to repeat in a command that continues."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._flags = flags
        self._describe = Describer()
        self._actions: dict[str, Action] = {}
        self._labels: dict[str, str] = {}
        """For each evidence id, the command or file that the evidence is about."""
        self._question: EventDescription | None = None
        self._error = ""
        self._ended: events.RequestFinished | None = None
        self._ending = ""

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        """Take note of an event."""
        if not isinstance(what, StoredEvent):
            return
        event = what.event
        if isinstance(event, events.SessionStarted):
            self._describe = Describer(shlex.join([event.session_id, *self._flags]))
        described = self._describe(event)
        match event:
            case events.ActionStarted():
                self._actions[event.action_id] = event.action
            case events.ActionFinished():
                action = self._actions.pop(event.action_id, None)
                command = str(action.args.get("command", "")) if action else ""
                if event.evidence_id:
                    self._labels[event.evidence_id] = command or event.path or event.operation
            case events.ErrorReported() if not event.notice:
                self._error = error_text(event)
            case events.RequestFinished():
                self._ended, self._ending = event, described.text if described else ""
            case _:
                pass
        if described is not None and described.kind == "question":
            self._question = described

    def markdown(self, state: AgentState) -> str:
        """Return the summary of the last request."""
        request = state.request or state.finished
        return "\n\n".join(self._parts(state, request)) + "\n"

    def _parts(self, state: AgentState, request: Request | None) -> Iterator[str]:
        outcome = self._ended.outcome if self._ended else "interrupted"
        title = plain(one_line(request.text, _TITLE)) if request else ""
        yield f"### {_MARKS[outcome]} {text(f'web.outcome.{outcome}')}: {title}"
        yield " · ".join(self._facts(state, request))
        if self._error and outcome == "provider_error":
            yield plain(self._error)
        if request is not None:
            yield from self.work(request)
        if state.reply.strip():
            yield f"#### {text('job.reply')}"
            yield inert(cut(state.reply.strip(), _LONGEST))
        if self._question is not None and outcome in ("awaiting_approval", "consultation", "not_satisfied"):
            yield f"#### {text('job.question')}"
            yield fenced(cut(self._question.text, _LONGEST), "text")
            if self._question.difference:
                yield fenced(cut(self._question.difference, _LONGEST), "diff")
        if self._ending and outcome not in ("done", "accepted"):
            yield "\\\n".join(map(plain, self._ending.splitlines()))

    def _facts(self, state: AgentState, request: Request | None) -> Iterator[str]:
        yield text("job.exit_code", code=self._ended.exit_code if self._ended else 130)
        yield plain(state.model)
        yield text("job.mode", mode=state.mode)
        if request is not None:
            yield text("job.loops", count=request.loops)
            if request.cost_usd is not None:
                yield f"{request.cost_usd:.4f} USD"
        yield text("job.session", id=state.session_id)

    def work(self, request: Request) -> Iterator[str]:
        """Yield the requirements with their evidence, the checks, and the changed files."""
        objective = request.objective
        judged = objective.evaluation is not None and objective.evaluation.by != "nobody"
        if objective.requirements:
            head = [text(f"job.{one}") for one in ("requirement", "priority", "score", "evidence")]
            rows = [self._requirement(one, judged=judged) for one in objective.requirements]
            yield "\n".join([_row(["", *head]), _row(["---"] * 5), *rows])
        if objective.checks:
            shown = [_check(one) for one in objective.checks[:_MOST_CHECKS]]
            yield "\n".join([f"#### {text('job.checks')}", "", *shown])
        if request.changed:
            names = [f"- {code(path)}" for path in request.changed[:_MOST_FILES]]
            more = len(request.changed) - _MOST_FILES
            names += [f"- … +{more}"] if more > 0 else []
            yield "\n".join([f"#### {text('job.files')}", "", *names])

    def _requirement(self, item: RequirementItem, *, judged: bool) -> str:
        labels = dict.fromkeys(
            one_line(self._labels[one], _LABEL) for one in item.evidence if one in self._labels
        )
        mark = "✅" if item.satisfaction >= MET else "🟡" if item.satisfaction >= PARTLY else "❌"
        return _row(
            [
                mark if judged else "–",
                plain(one_line(item.requirement, _CELL)),
                text(f"goal.priority_{item.priority}"),
                percent(item.satisfaction) if judged else "–",
                ", ".join(code(one) for one in list(labels)[:_MOST_LABELS]),
            ]
        )


_MARKS: dict[RequestOutcome, str] = {
    "done": "✅",
    "accepted": "✅",
    "not_judged": "❔",
    "not_satisfied": "❌",
    "stopped": "⛔",
    "pending_user": "✋",
    "deferred": "✋",
    "awaiting_approval": "✋",
    "consultation": "✋",
    "provider_error": "💥",
    "interrupted": "⛔",
}
_CHECK_MARKS = {"passed": "✓", "failed": "✗", "not_run": "–"}


def failed_start(message: str) -> str:
    """Return the summary of a run that could not start."""
    return f"### 💥 {text('job.not_started')}\n\n{plain(message)}\n"


def plain(said: str) -> str:
    """Return a text in one line, without any effect in Markdown."""
    return _mentions_off(_MARKUP.sub(r"\\\1", on_one_line(said)))


def code(said: str) -> str:
    """Return a text as code in one line, which can also stand in a table."""
    shown = on_one_line(said).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown else ""


def inert(markdown: str) -> str:
    """Return a model's Markdown without HTML, pictures and mentions, and with all code blocks closed.

    A picture's address could carry data away, and a mention would notify the person named.
    """
    lines: list[str] = []
    fence = ""
    for line in harmless(markdown).split("\n"):
        opened = _FENCE.match(line)
        if fence:
            fence = "" if opened and line.strip().startswith(fence) and not line.strip(" `~") else fence
            lines.append(line)
            continue
        if opened:
            fence = opened[1]
        lines.append(line if opened else _inert_line(line))
    written = "\n".join([*lines, fence] if fence else lines)
    # Markdown has more ways to begin and end code than the lines above know, so a parser has the last word.
    return fenced(markdown, "text") if _is_active(written) else written


def _is_active(markdown: str) -> bool:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only for summaries

    blocks = MarkdownIt("commonmark").parse(markdown.replace(_NO_MENTION, "@"))
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    return any(token.type in ("html_block", "html_inline", "image") for token in tokens)


def _inert_line(line: str) -> str:
    parts: list[str] = []
    end = 0
    for span in _CODE.finditer(line):
        parts += [_ACTIVE.sub(_disarmed, line[end : span.start()]), span[0]]
        end = span.end()
    return "".join([*parts, _ACTIVE.sub(_disarmed, line[end:])])


def _disarmed(found: re.Match[str]) -> str:
    return _NO_MENTION if found[0] == "@" else "&lt;" if found[0] == "<" else "\\!"


def _mentions_off(said: str) -> str:
    return re.sub(r"@(?=\w)", _NO_MENTION, said)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _check(result: CheckResult) -> str:
    detail = f": {plain(one_line(result.detail, _CELL))}" if result.detail and not result.good else ""
    return f"- {_CHECK_MARKS[result.state]} {code(one_line(result.name, _CELL))}{detail}"
