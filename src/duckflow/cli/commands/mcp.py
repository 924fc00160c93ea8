"""`duckflow mcp`: the MCP servers of the user's configuration (L4)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duckflow.cli.commands.flags import HERE, FolderFlag, JsonFlag, TrustFlag, argument, option
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

if TYPE_CHECKING:
    from duckflow.domain.extensions import ServerReport

commands = typer.Typer(help=text("help.mcp"), no_args_is_help=True)
NameArgument = Annotated[str, argument("NAME", "mcp_name")]


@commands.command("list", help=text("help.mcp_list"))
def list_all(workspace: FolderFlag = HERE, *, trust: TrustFlag = False, json: JsonFlag = False) -> None:
    """List the configured servers without starting them."""
    from duckflow.config.loading import load_as_trusted  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.tools.mcp.servers import report_of  # noqa: PLC0415 - as above

    servers = load_as_trusted(workspace, trust=trust).settings.mcp.servers
    _show([report_of(name, server) for name, server in servers.items()], json=json)


@commands.command("add", help=text("help.mcp_add"))
def add(
    name: NameArgument,
    command: Annotated[list[str] | None, argument("[-- COMMAND ARGS...]", "mcp_command")] = None,
    url: Annotated[str, option("url", "mcp_url", metavar="URL")] = "",
    env: Annotated[list[str] | None, option("env", "mcp_env", metavar="NAME=VALUE")] = None,
    header: Annotated[list[str] | None, option("header", "mcp_header", metavar="NAME:VALUE")] = None,
    read: Annotated[list[str] | None, option("read", "mcp_read", metavar="PATH")] = None,
    *,
    network: Annotated[bool, option("network/--no-network", "mcp_network")] = True,
    no_sandbox: Annotated[bool, option("no-sandbox", "mcp_no_sandbox")] = False,
    write: Annotated[bool, option("write", "mcp_write")] = False,
) -> None:
    """Add a server to the user's configuration."""
    from duckflow.config.files.mcp_servers import add_server, named_paths  # noqa: PLC0415 - as above
    from duckflow.config.loading import user_file  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.config.mcp import McpServer  # noqa: PLC0415 - as above

    if bool(command) == bool(url):
        raise UsageError("mcp.command_or_url")
    try:
        server = McpServer(
            command=tuple(command or ()),
            url=url,
            env=dict(_pair(one, "=", "NAME=VALUE") for one in env or ()),
            headers=dict(_pair(one, ":", "Name: value") for one in header or ()),
            read=(*(read or ()), *named_paths(command or ())),
            network=network and bool(command),
            sandbox=not no_sandbox,
            workspace="write" if write else "read",
        )
    except ValueError as exc:
        reason = str(exc).split("\n")[-1].split(" [type=")[0].strip()
        raise UsageError("mcp.unusable", name=name, reason=reason) from exc
    add_server(user_file(), name, server)
    echo(text("mcp.added", name=name, path=user_file()))


@commands.command("remove", help=text("help.mcp_remove"))
def remove(name: NameArgument) -> None:
    """Remove a server with everything that was stored about it."""
    from duckflow.config.files.mcp_servers import remove_server  # noqa: PLC0415 - as above
    from duckflow.config.loading import user_file  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.tools.mcp.connection import forget_server  # noqa: PLC0415 - as above

    remove_server(user_file(), name)
    forget_server(name)
    echo(text("mcp.removed", name=name, path=user_file()))


@commands.command("test", help=text("help.mcp_test"))
def try_out(
    name: NameArgument, workspace: FolderFlag = HERE, *, trust: TrustFlag = False, json: JsonFlag = False
) -> None:
    """Connect to a server as a session would."""
    from duckflow.cli.reports.mcp import tried  # noqa: PLC0415 - heavy, and not for --help

    report = tried(name, workspace, trust=trust)
    if report.status == "ready" and not json:
        echo(text("mcp.ready", name=name, version=report.version))
    _show([report], json=json)
    if report.status != "ready":
        raise typer.Exit(1)


@commands.command("login", help=text("help.mcp_login"))
def login(name: NameArgument, workspace: FolderFlag = HERE, *, trust: TrustFlag = False) -> None:
    """Sign in at a server."""
    from duckflow.cli.reports.mcp import signed_in  # noqa: PLC0415 - heavy, and not for --help

    signed_in(name, workspace, trust=trust)
    echo(text("mcp.signed_in"))


@commands.command("allow", help=text("help.mcp_allow"))
def allow(
    tool: Annotated[str, argument("SERVER[.TOOL]", "mcp_tool")],
    workspace: FolderFlag = HERE,
    *,
    read_only: Annotated[bool, option("read-only", "mcp_read_only")] = False,
    revoke: Annotated[bool, option("revoke", "mcp_revoke")] = False,
    trust: TrustFlag = False,
) -> None:
    """Allow tools permanently, or no longer."""
    from duckflow.config.loading import load_as_trusted  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.tools.mcp.connection import ALL, READING, grant  # noqa: PLC0415 - as above
    from duckflow.tools.mcp.servers import report_of  # noqa: PLC0415 - as above

    name, _, which = tool.removeprefix("mcp.").partition(".")
    server = load_as_trusted(workspace, trust=trust).settings.mcp.servers.get(name)
    if server is None:
        raise UsageError("mcp.no_such", name=name)
    grant(name, server, which or (READING if read_only else ALL), allow=not revoke)
    _show([report_of(name, server)], json=False)


@commands.command("serve", help=text("help.mcp_serve"))
def serve(
    workspace: FolderFlag = HERE,
    host: Annotated[list[str] | None, option("host", metavar="HOST")] = None,
    *,
    network: Annotated[bool, option("network")] = False,
    apply: Annotated[bool, option("apply", "serve_apply")] = False,
) -> None:
    """Let another agent try commands on a copy of the folder, over standard input and output (O7)."""
    try:
        from duckflow.cli.tool_server import serve_in  # noqa: PLC0415 - heavy, and only with the extra
    except ModuleNotFoundError as exc:
        raise UsageError("mcp.not_installed") from exc
    serve_in(workspace, host or (), network=network, apply=apply)


@commands.command("import", help=text("help.mcp_import"))
def import_file(file: Annotated[Path, argument("FILE", "mcp_file")]) -> None:
    """Add the servers of another agent's configuration."""
    from duckflow.config.files.mcp_servers import add_server, read_foreign  # noqa: PLC0415 - as above
    from duckflow.config.loading import user_file  # noqa: PLC0415 - heavy, and not for --help

    servers, unusable = read_foreign(file)
    added: list[str] = []
    for name, server in servers.items():
        try:
            add_server(user_file(), name, server)
            added.append(name)
        except UsageError as error:
            unusable[name] = text(error.key, **error.values)
    echo(text("mcp.imported", names=", ".join(added) or "-"))
    for name, reason in unusable.items():
        echo(text("mcp.skipped", name=name, reason=reason))


def _show(reports: "list[ServerReport]", *, json: bool) -> None:
    from duckflow.ui.views.extensions import server_lines  # noqa: PLC0415 - heavy, and not for --help

    for line in [one.model_dump_json() for one in reports] if json else server_lines(reports):
        echo(line)


def _pair(given: str, sign: str, form: str) -> tuple[str, str]:
    name, found, value = given.partition(sign)
    if not found or not name.strip():
        raise UsageError("mcp.bad_pair", pair=given, form=form)
    return name.strip(), value.strip()
