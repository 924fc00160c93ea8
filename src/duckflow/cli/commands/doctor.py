"""`duckflow doctor`: what is in force here, what is missing, and how to get it."""

import typer

from duckflow.cli.flags import HERE, FolderFlag, JsonFlag, ModelFlag, TrustFlag
from duckflow.ui.output.escaping import echo


def doctor(
    model: ModelFlag = None, workspace: FolderFlag = HERE, *, trust: TrustFlag = False, json: JsonFlag = False
) -> None:
    """Look at everything and say a line about each; the exit code is 1 if something is broken."""
    from pydantic_core import to_json  # noqa: PLC0415 - heavy, and not for --help

    from duckflow.cli.reports.diagnosis import examine, show  # noqa: PLC0415 - heavy, and not for --help

    broken = False
    for finding in examine(workspace, model, trusted=trust):
        echo(to_json(finding._asdict()).decode() if json else show(finding))
        broken = broken or finding.state == "broken"
    raise typer.Exit(int(broken))
