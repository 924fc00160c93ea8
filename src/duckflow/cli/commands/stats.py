"""`duckflow stats`: what became of requests, against what is aimed at (J7)."""

from contextlib import closing

from duckflow.cli.flags import JsonFlag
from duckflow.ui.output.escaping import echo


def stats(*, json: JsonFlag = False) -> None:
    """Print the statistics, as a table or a JSON object a line."""
    from duckflow.app.places import open_log  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.domain.work.outcomes import TARGETS  # noqa: PLC0415 - as above
    from duckflow.store.outcome_stats import Outcomes  # noqa: PLC0415 - as above
    from duckflow.ui.views.tables import stats_text  # noqa: PLC0415 - as above

    with closing(open_log()) as log:
        found = Outcomes(log.database).stats()
    if not json:
        echo(stats_text(found))
        return
    for one in (*found, TARGETS):
        echo(one.model_dump_json())
