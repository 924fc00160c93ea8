"""Carries out the commands of a session that take time: requests, answers, undo and the like."""

from collections.abc import Coroutine
from typing import Any

from duckflow.app.app import App
from duckflow.domain import commands
from duckflow.domain.commands import SessionCommand, SessionResult
from duckflow.domain.errors import UsageError
from duckflow.domain.events import Compacted, ErrorReported
from duckflow.domain.extensions import split_runs
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.habits import habit_of
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.answers import ends_request, is_stop
from duckflow.loops.undo.rewind import rewind
from duckflow.ui.commands.table import find_custom, read_prompt


class SessionWork:
    """The work of one session, one command at a time. With `driven`, a program waits for all of it."""

    def __init__(self, app: App, *, driven: bool) -> None:
        self._app = app
        self._driven = driven

    @property
    def _state(self) -> AgentState:
        return self._app.session.state

    async def perform(self, command: SessionCommand) -> SessionResult | None:
        """Carry out a command. Return its result, None for a command that takes no time."""
        chat = self._app.chat
        match command:
            case commands.SayMessage(text=said) if habit := habit_of(said):
                self._app.session.record(ErrorReported(key=f"habits.{habit}", notice=True))
            case commands.SayMessage(text=said) if is_stop(said) and self._state.question is not None:
                return await self._worked(chat.answer_in_words(said))
            case commands.SayMessage(text=said) if is_stop(said) and self._rests():
                self._app.session.notify("clients.nothing_runs")
            case commands.SayMessage(text=said, pictures=()) if ends_request(said, self._state):
                return SessionResult(outcome=await chat.end(said))
            case commands.SayMessage(text=said, pictures=pictures):
                return await self._worked(chat.say(await self._meant(said), pictures))
            case commands.AnswerShown(answer=answer):
                return await self._worked(chat.answer(answer))
            case commands.ChooseShown(way=way):
                return await self._worked(chat.choose(way))
            case commands.AnswerInWords(text=said):
                return await self._worked(chat.answer_in_words(said))
            case commands.DeclineAndStop():
                return SessionResult(outcome=await chat.decline())
            case commands.ContinueWork():
                if self._state.question is not None:
                    return SessionResult(outcome=chat.remind())
                return await self._worked(chat.go_on())
            case commands.AskAboutUnknown(what=what):
                return SessionResult(outcome=chat.ask("unknown", what=what))
            case commands.RunShellCommand(command=line):
                await self._app.dispatcher.run_typed(line)
            case commands.ReviewChanges(changes=changes, patch=patch):
                await self._app.review(changes, patch)
            case commands.StopBackground():
                await chat.stop_commands()
            case commands.UndoWork(wanted=wanted, upto=upto):
                return SessionResult(report=await self._undo(wanted, upto))
            case commands.RewindWork(before=before, part=part):
                files, conversation = part != "conversation", part != "files"
                app = self._app
                session, log, undoing = app.session, app.log, app.undoing
                report = await rewind(session, log, undoing, before, conversation=conversation, files=files)
                return SessionResult(report=report)
            case commands.CompactConversation():
                self._app.session.record(Compacted())
            case commands.SetModel(name=name):
                await self._app.model.change(name)
            case _:
                return None
        return SessionResult()

    async def _worked(self, work: Coroutine[Any, Any, RequestOutcome]) -> SessionResult:
        outcome, chat, unheard = await work, self._app.chat, self._app.session.unheard
        while True:
            if self._driven:
                outcome = await chat.let_background_end(outcome)
            if not unheard or self._state.question is not None:
                return SessionResult(outcome=outcome)
            typed = unheard.pop(0)  # typed after the last answer to the request
            if isinstance(typed, commands.RunShellCommand):
                await self._app.dispatcher.run_typed(typed.command)
            else:
                outcome = await chat.say(typed.text, typed.pictures)

    async def _meant(self, said: str) -> str:
        """Expand a user-defined command or a prompt of an MCP server to its text."""
        prompt = read_prompt(said)
        if prompt is None:
            return await self._expand(said)
        if self._app.mcp is None:
            raise UsageError("mcp.no_prompt", name=prompt.name)
        await self._app.mcp.ready()
        server, _, name = prompt.name.partition(".")
        return await self._app.mcp.prompt(server, name, prompt.argument)

    async def _expand(self, said: str) -> str:
        """Return the message of a custom command, after running its `!` lines; other messages unchanged."""
        custom = find_custom(said, self._app.extensions.commands)
        if custom is None:
            return said
        if custom.allows:
            self._app.session.notify("skills.allows", name=custom.name)
        message, runs = split_runs(custom.body)
        for run in runs:
            await self._app.dispatcher.run_typed(run)
        return message

    async def _undo(self, wanted: str, upto: str | None) -> UndoReport:
        undoing = self._app.undoing
        if wanted in ("", "all", "redo"):
            return await (undoing.redo() if wanted == "redo" else undoing.undo_request(upto))
        if not wanted.isdecimal():
            raise UsageError("undo.wanted", wanted=wanted)
        return await undoing.undo(int(wanted), upto)

    def _rests(self) -> bool:
        request = self._state.request
        return self._state.question is None and (request is None or request.outcome == "interrupted")
