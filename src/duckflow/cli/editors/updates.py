"""Translates a session's events to updates for an editor."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acp import helpers, schema

from duckflow.api import Update
from duckflow.app.app import App
from duckflow.domain import events
from duckflow.domain.decision import Action, Decision
from duckflow.domain.errors import ToolError
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown, Waiting, Writing
from duckflow.domain.questions.approval import Approval
from duckflow.domain.work.plan import WorkStatus
from duckflow.safety.files.encoding import decode
from duckflow.ui.output.escaping import on_one_line, visible
from duckflow.ui.views.agents import running_line
from duckflow.ui.views.events import Describer, waiting_line
from duckflow.ui.views.live.progress import action_name

_KINDS: Mapping[str, schema.ToolKind] = {
    "file_ops.read_file": "read",
    "file_ops.outline": "read",
    "file_ops.list_files": "search",
    "file_ops.search": "search",
    "file_ops.write_file": "edit",
    "file_ops.edit_file": "edit",
    "file_ops.edit_cell": "edit",
    "file_ops.delete_file": "delete",
    "file_ops.move_file": "move",
    "shell": "execute",
    "plan_tool": "think",
    "task_tool": "think",
    "web": "fetch",
}
"""Editors' kinds of tool calls, by operation or by the first part of an operation's name."""
_STATUS: Mapping[WorkStatus, schema.PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "failed": "completed",
}
_MOST_FILES = 20
_OUTPUT = 8_000
"""Maximum characters shown of the output of a running command."""

SessionUpdates = Iterator[Any]
Contents = list[Any]


class SessionTranslator:
    """Translates one session's messages, thoughts, tool calls, plan and title."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._root = app.workspace.root
        self._describe = Describer()
        self._streamed = ""
        self._calls: dict[str, str] = {}
        """Editor's call ids by action id, for running actions."""
        self._asked: Approval | None = None
        self._output = ""

    def __call__(self, update: Update) -> SessionUpdates:
        """Yield the editor's form of a session's update."""
        match update:
            case ReplyPiece():
                self._streamed += update.text
                yield helpers.update_agent_message_text(update.text)
            case ReplyVoid():
                self._streamed = ""
                yield helpers.update_agent_message_text("\n\n")
            case ThinkingShown():
                yield helpers.update_agent_thought_text(update.text)
            case Waiting():
                yield helpers.update_agent_thought_text(waiting_line(update))
            case Writing():
                pass  # editors show their own sign of work
            case OutputPiece():
                yield from self._add_output(update.text)
            case StoredEvent():
                yield from self._event(update.event)

    def replay(self, story: Iterable[StoredEvent]) -> SessionUpdates:
        """Yield the whole session, for an editor that opens it again."""
        for recorded in story:
            if isinstance(recorded.event, events.UserMessage):
                yield helpers.update_user_message_text(recorded.event.text)
                yield from self._pasted(recorded.event)
            yield from self._event(recorded.event)

    def _event(self, event: Event) -> SessionUpdates:
        described = self._describe(event)
        if isinstance(event, events.RequestFinished) and self._streamed:  # cancelled in mid-reply
            self._streamed = ""
            yield helpers.update_agent_message_text("\n\n")
        match event:
            case events.Reply():
                rest = event.text.removeprefix(self._streamed) if self._streamed else event.text
                same = event.text.startswith(self._streamed)
                self._streamed = ""
                yield helpers.update_agent_message_text((rest if same else f"\n\n{event.text}") + "\n\n")
            case events.DecisionMade():
                if _says_more(event.decision):
                    yield helpers.update_agent_thought_text(f"{event.decision.rationale}\n\n")
            case events.ActionStarted():
                yield self._start(event)
            case events.ActionFinished():
                yield self._finish(event)
            case events.AgentMoved():
                yield from self._show_in_call("\n".join(map(running_line, self._app.session.state.agents)))
            case events.ApprovalRequested():
                self._asked = event.approval
            case events.ApprovalAnswered() | events.ConsultationRequested() | events.UserMessage():
                pass  # from the editor itself, or asked as a question
            case events.PlanChanged() | events.TaskListStarted() | events.TaskFinished():
                yield helpers.update_plan(self._entries(event))
            case events.ModeChanged() | events.ModelChanged() | events.EffortChanged():
                pass  # sent as options
            case events.RequestFinished(outcome="provider_error"):
                pass  # the error is the answer to the request
            case events.SessionTitled():
                yield schema.SessionInfoUpdate(session_update="session_info_update", title=event.title)
            case _ if described is not None and described.kind == "error":
                yield helpers.update_agent_message_text(f"{described.text}\n\n")
            case _ if described is not None and described.kind in ("note", "setting", "undo", "outcome"):
                yield helpers.update_agent_thought_text(f"{described.text}\n\n")
            case _:
                pass

    def _pasted(self, said: events.UserMessage) -> SessionUpdates:
        for picture in said.pictures:
            data = self._app.kept.picture(picture.digest)
            if data is not None:
                block = helpers.image_block(base64.b64encode(data).decode("ascii"), picture.media)
                yield helpers.update_user_message(block)

    def _start(self, event: events.ActionStarted) -> schema.ToolCallStart:
        """Return the tool call. If the user was asked about it, it has the id of that question."""
        asked, self._asked, self._output = self._asked, None, ""
        action = event.action
        known = asked is not None and asked.action.operation == action.operation
        call = asked.approval_id if asked is not None and known else event.action_id
        self._calls[event.action_id] = call
        return helpers.start_tool_call(
            call,
            action_name(action.operation, action.args),
            kind=kind_of(action.operation),
            status="in_progress",
            locations=locations_of(action, self._root),
            raw_input=action.args,
        )

    def _finish(self, event: events.ActionFinished) -> schema.ToolCallProgress:
        refused = self._asked.approval_id if self._asked is not None else event.evidence_id
        call = self._calls.pop(event.action_id, refused)
        failed = event.outcome != "ok" or event.exit_code not in (None, 0)
        differences = (
            self._difference(one.path, one.before, one.after) for one in event.changes[:_MOST_FILES]
        )
        shown = [one for one in differences if one]
        told = [] if shown else [helpers.tool_content(helpers.text_block(visible(event.text)))]
        return helpers.update_tool_call(
            call, status="failed" if failed else "completed", content=[*told, *shown], raw_output=event.text
        )

    def _add_output(self, piece: str) -> SessionUpdates:
        self._output = (self._output + piece)[-_OUTPUT:]
        yield from self._show_in_call(self._output)

    def _show_in_call(self, text: str) -> SessionUpdates:
        """Show text as what the running tool call has done so far."""
        if self._calls:
            block = helpers.tool_content(helpers.text_block(visible(text)))
            yield helpers.update_tool_call([*self._calls.values()][-1], status="in_progress", content=[block])

    def _difference(
        self, path: str, before: str | None, after: str | None
    ) -> schema.FileEditToolCallContent | None:
        """Return the change of a file; None if it is not text or its content was not kept."""
        old, new = self._content(path, before), self._content(path, after)
        if (old is None and before is not None) or (new is None and after is not None):
            return None
        return helpers.tool_diff_content(str(self._root / path), new or "", old)

    def _content(self, path: str, digest: str | None) -> str | None:
        if digest is None:
            return None
        try:
            data = self._app.kept.content(digest)
            now = self._app.workspace.paths.now(path) if data is None else None
            data = now.data if now is not None and now.word == digest else data
            return decode(path, data).text if data is not None else None
        except ToolError:
            return None

    def _entries(
        self, event: events.PlanChanged | events.TaskListStarted | events.TaskFinished
    ) -> list[schema.PlanEntry]:
        parts: list[tuple[str, WorkStatus]] = []
        if isinstance(event, events.PlanChanged):
            steps = () if event.change == "deleted" else event.plan.steps
            parts = [(step.name, step.status) for step in steps]
        elif listed := self._app.session.state.task_list:
            parts = [(action_name(task.operation, task.args), task.status) for task in listed.tasks]
        return [
            helpers.plan_entry(
                on_one_line(name) + (" ✗" if status == "failed" else ""), status=_STATUS[status]
            )
            for name, status in parts
        ]


def _says_more(decision: Decision) -> bool:
    """Return whether the reason is more than the beginning of the reply, which the editor shows as well."""
    reason = decision.rationale.rstrip("… ")
    return bool(reason) and not " ".join(decision.reply.split()).startswith(reason)


def kind_of(operation: str) -> schema.ToolKind:
    """Return the kind of an operation, which decides its symbol in the editor."""
    return _KINDS.get(operation) or _KINDS.get(operation.partition(".")[0], "other")


def locations_of(action: Action, root: Path) -> list[schema.ToolCallLocation]:
    """Return the place in a file that an action works on."""
    path, line = action.args.get("path"), action.args.get("start")
    if not isinstance(path, str):
        return []
    return [schema.ToolCallLocation(path=str(root / path), line=line if isinstance(line, int) else None)]
