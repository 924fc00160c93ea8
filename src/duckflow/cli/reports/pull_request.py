"""Text of a draft pull request for a run of the fleet."""

from duckflow.fleet.fleet import Fleet
from duckflow.fleet.runs import FleetRun
from duckflow.i18n.catalogue import text
from duckflow.ui.job_summary import JobSummary, inert, plain
from duckflow.ui.transcript import fenced


def pull_request_text(fleet: Fleet, run: FleetRun) -> str:
    """Return the request, the reply, requirements with evidence, and changed files as Markdown."""
    summary = JobSummary()
    for recorded in fleet.runs.events(run.id):
        summary(recorded)
    state = fleet.state(run)
    request = state.request or state.finished
    cost = "–" if run.cost_usd is None else f"${run.cost_usd:.2f}"
    parts = [
        f"# {plain(run.request.splitlines()[0])}",
        "" if run.state == "done" else text("fleet.pull.not_done"),
        fenced(run.request, "text") if "\n" in run.request else "",
        inert(run.report.reply.strip()) if run.report else "",
        *(summary.work(request) if request else ()),
        text("fleet.pull.made_by", run=run.id, minutes=round(run.worked_s / 60, 1), cost=cost),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
