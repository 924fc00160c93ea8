"""`duckflow sessions`: lists, shows, exports, rewinds, forks, attaches to and deletes sessions."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duckflow.cli.commands.flags import JsonFlag, argument, option
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

if TYPE_CHECKING:
    from duckflow.store.event_log import SqliteEventLog
    from duckflow.store.sessions import Sessions

commands = typer.Typer(help=text("help.sessions"), no_args_is_help=True)
NumberArgument = Annotated[int | None, argument("N", "message")]
SessionArgument = Annotated[str, argument("ID", "session")]


@commands.command("list", help=text("help.sessions_list"))
def list_all(words: Annotated[str, argument("WORDS", "words")] = "", *, json: JsonFlag = False) -> None:
    """List all sessions, the last used one first, or those in which someone said these words."""
    from duckflow.domain.text import excerpt  # noqa: PLC0415 - not for --help

    with _opened() as (_, sessions):
        found = sessions.search(words) if words else [(one, "") for one in sessions.listed() if one.title]
    for one, said in found:
        when = one.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        echo(one.model_dump_json() if json else f"{one.id}  {when}  {one.workspace}  {one.title}")
        if said and not json:
            echo(f"      {excerpt(said, words)}")
    if not found and not json:
        echo(text("session.none"))


@commands.command("show", help=text("help.sessions_show"))
def show(
    session: SessionArgument,
    *,
    json: JsonFlag = False,
    replayed: Annotated[bool, option("replay")] = False,
    speed: Annotated[float, option("speed", min=0)] = 1.0,
) -> None:
    """Print the events of one session."""
    from duckflow.domain.reduce.rewind import present  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.ui.screen import replay  # noqa: PLC0415 - as above
    from duckflow.ui.transcript import print_json, print_transcript  # noqa: PLC0415 - as above

    with _opened() as (log, sessions):
        events = log.load(sessions.show(session).id)
    if replayed:
        replay(present(events), speed)
    elif json:
        for recorded in events:
            print_json(recorded)
    else:
        print_transcript(present(events))


@commands.command("export", help=text("help.sessions_export"))
def export(
    session: SessionArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help=text("help.option.output"))
    ] = None,
    *,
    json: Annotated[bool, option("json", "export_json")] = False,
) -> None:
    """Write one session as a document."""
    from duckflow.domain.reduce.rewind import present  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.ui.transcript import as_json, as_markdown  # noqa: PLC0415 - heavy, and not for --help

    with _opened() as (log, sessions):
        found = sessions.show(session)
        events = present(log.load(found.id))
    document = as_json(found.title, events) if json else as_markdown(found.title, events)
    if output is None:
        echo(document.removesuffix("\n"))
        return
    try:
        output.write_text(document, "utf-8")
    except OSError as exc:
        raise UsageError("session.not_written", path=output, reason=exc.strerror or exc) from exc


@commands.command("rewind", help=text("help.sessions_rewind"))
def rewind(
    session: SessionArgument,
    number: NumberArgument = None,
    *,
    files: Annotated[bool, option("files", "rewind_files")] = False,
    conversation: Annotated[bool, option("conversation", "rewind_conversation")] = False,
    json: JsonFlag = False,
) -> None:
    """Return to the point before a message, or list the messages."""
    import asyncio  # noqa: PLC0415 - heavy, and not for --help

    from pydantic_core import to_json  # noqa: PLC0415 - as above

    from duckflow.cli.reports.rewind import rewind_session  # noqa: PLC0415 - as above
    from duckflow.domain.session_client import find_message  # noqa: PLC0415 - as above
    from duckflow.loops.undo.rewind import past_messages  # noqa: PLC0415 - as above

    with _opened() as (log, sessions):
        found = sessions.show(session)
        messages = past_messages(log.load(found.id))
    if number is None:
        for one in messages:
            when = one.at.astimezone().strftime("%Y-%m-%d %H:%M")
            line = f"{one.number}  {when}  {' '.join(one.text.split())}"
            echo(to_json(one._asdict()).decode() if json else line)
        return
    before = find_message(messages, number).seq  # a wrong number opens nothing
    both = files == conversation
    echo(asyncio.run(rewind_session(found, before, files=files or both, conversation=conversation or both)))


@commands.command("fork", help=text("help.sessions_fork"))
def fork(session: SessionArgument, number: NumberArgument = None) -> None:
    """Begin a new session like this one, or as it was before a message."""
    from duckflow.domain.session_client import find_message  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.loops.undo.rewind import changed_since, past_messages  # noqa: PLC0415 - as above
    from duckflow.loops.undo.rewind import fork as fork_session  # noqa: PLC0415 - as above

    with _opened() as (log, sessions):
        found = sessions.show(session).id
        events = log.load(found)
        before = find_message(past_messages(events), number).seq if number is not None else None
        echo(text("rewind.forked", session=found, new=fork_session(log, found, before)))
        if newer := changed_since(events, before):
            echo(text("rewind.newer", files=", ".join(newer)))


@commands.command("attach", help=text("help.sessions_attach"))
def attach(session: SessionArgument) -> None:
    """Open a second window on a session that another process has open."""
    from duckflow.cli.chat.launch import attach as attach_window  # noqa: PLC0415 - heavy, and not for --help

    attach_window(session)


@commands.command("delete", help=text("help.sessions_delete"))
def delete(session: SessionArgument) -> None:
    """Delete one session with all its data."""
    from duckflow.api import delete_session  # noqa: PLC0415 - heavy, and not for --help

    gone = delete_session(session)
    echo(text("session.deleted", session=gone.id, title=gone.title))


@contextmanager
def _opened() -> Generator[tuple["SqliteEventLog", "Sessions"]]:
    from duckflow.app.places import open_log  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.store.sessions import Sessions  # noqa: PLC0415 - as above

    with closing(open_log()) as log:
        yield log, Sessions(log.database)
