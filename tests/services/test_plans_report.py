"""The report on a task list: the model's words, the program's facts (C3)."""

import json

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import ModelTraits, Usage
from duckflow.domain.work.plan import TaskList
from duckflow.services.questions import put
from duckflow.services.task_lists import TaskReport, plain_report, write_report
from fakes.model import ONE_CALL, FakeModel
from fakes.plans import tasks
from fakes.rows import every_row


def ended(*statuses, result="a.py: no such file"):
    made = tuple(
        task.model_copy(update={"result": result if task.status == "failed" else "fine"})
        if task.status != "pending"
        else task
        for task in tasks(*statuses)
    )
    return TaskList(list_id="list_1", tasks=made)


def report(status="success", summary="Two files were read.", **fields):
    return json.dumps({"status": status, "summary": summary, "failures": [], "next_action": "", **fields})


@every_row(
    ("statuses", "status", "counts"),
    [
        (("completed", "completed"), "success", (2, 0, 0)),
        (("completed", "failed", "pending"), "partial", (1, 1, 1)),
        (("failed", "pending"), "failed", (0, 1, 1)),
        (("completed", "pending"), "cancelled", (1, 0, 1)),
        (("pending",), "cancelled", (0, 0, 1)),
        ((), "success", (0, 0, 0)),
    ],
)
def test_the_facts_alone_make_a_report_C3(statuses, status, counts):
    facts = plain_report(ended(*statuses))
    assert facts.status == status
    assert (facts.completed, facts.failed, facts.pending) == counts
    done, failed, left = counts
    assert facts.summary == f"{done} of {sum(counts)} tasks completed, {failed} failed, {left} not run."


def test_a_list_that_was_stopped_is_cancelled_C4():
    assert plain_report(ended("completed", "failed", result="cancelled")).status == "cancelled"
    assert plain_report(ended("completed"), cancelled=True).status == "cancelled"


async def test_the_model_s_words_stand_over_the_program_s_counts_C3():
    model = FakeModel(report(next_action="Write b.py."))
    told, usage = await put(model, write_report(ended("completed", "completed"), "lies a.py"))
    assert (told.status, told.completed, told.failed, told.pending) == ("success", 2, 0, 0)
    assert (told.summary, told.next_action, told.failures) == ("Two files were read.", "Write b.py.", ())
    assert usage == ONE_CALL
    system, asked = (message.text for message in model.requests[0].messages)
    assert "Output: TaskReport\n" in system
    assert "lies a.py" in asked
    assert "task_x1 file_ops.read_file" in asked
    assert asked.endswith("Output: TaskReport")


async def test_every_failed_task_is_named_with_the_model_s_cause_or_its_own_C3():
    failures = [
        {"task": "task_x2", "cause": "The path has a typing error."},
        {"task": "task_9", "cause": "?"},
    ]
    model = FakeModel(report("partial", failures=failures))
    told, _ = await put(model, write_report(ended("completed", "failed", "failed")))
    assert told.failures == (
        "a.py: The path has a typing error.",
        "a.py: a.py: no such file",
    )


async def test_a_task_that_ran_may_still_tell_of_a_failure_C3():
    failures = [{"task": "task_x1", "cause": "two tests fail"}]
    told, _ = await put(FakeModel(report("failed", failures=failures)), write_report(ended("completed")))
    assert (told.status, told.completed) == ("failed", 1)
    assert told.failures == ("a.py: two tests fail",)


@every_row(
    ("claimed", "statuses", "problem"),
    [
        ("success", ("completed", "failed"), "`status` can't be success: 1 tasks failed and 0 did not run"),
        ("partial", ("failed", "pending"), "so it is failed"),
        ("cancelled", ("completed",), "the list was not stopped"),
    ],
)
async def test_a_report_that_makes_more_of_it_than_happened_is_mended_once_C3(claimed, statuses, problem):
    facts = plain_report(ended(*statuses))
    model = FakeModel(report(claimed), report(facts.status))
    told, _ = await put(model, write_report(ended(*statuses)))
    assert told.status == facts.status
    assert problem in model.requests[1].messages[-1].text


async def test_a_cancelled_list_stays_cancelled_whatever_the_model_says_C4():
    told, _ = await put(FakeModel(report("success")), write_report(ended("failed", result="cancelled")))
    assert told.status == "cancelled"


@every_row(
    ("turns", "spent"),
    [
        (([ProviderError("llm.no_key")],), Usage()),
        (([Unavailable("llm.timeout", seconds=1)],), Usage()),
        (("nonsense", "nonsense"), ONE_CALL + ONE_CALL),
        ((report("success"), report("success")), ONE_CALL + ONE_CALL),
        (("{}", "{}"), ONE_CALL + ONE_CALL),
    ],
)
async def test_if_the_model_fails_the_facts_are_the_report_C3(turns, spent):
    told, usage = await put(FakeModel(*turns), write_report(ended("completed", "failed")))
    assert told == plain_report(ended("completed", "failed"))
    assert told.failures == ("a.py: a.py: no such file",)
    assert usage == spent


async def test_a_model_that_can_be_bound_is_bound_to_the_whole_shape():
    model = FakeModel(report())
    await put(model, write_report(ended("completed")))
    schema = model.requests[0].answer_schema
    assert schema is not None
    assert schema["required"] == list(TaskReport.model_fields)
    assert not any(limit in str(schema) for limit in ("maxLength", "minLength"))


def test_a_long_list_keeps_its_failures_in_a_small_window():
    many = ended(*["completed"] * 60, "failed", result="the cause " * 20)
    request = write_report(many, "x" * 5000).prompt(ModelTraits(name="m", window=2048))
    asked = request.messages[1].text
    assert "the cause" in asked
    assert "60 more tasks, all completed" in asked
    assert len(asked) < 3 * 2048
