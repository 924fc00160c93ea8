"""One request through two attempts, as the loop will take it: from the request to a verdict that is done."""

import ast
import json

from duckflow.domain.decision import Action
from duckflow.domain.reduce.objective import (
    begin_attempt,
    end_attempt,
    learn,
    note_list,
    note_result,
)
from duckflow.domain.state import Request
from duckflow.domain.work.objective import Evidence, TaskObjective
from duckflow.evaluation.continuation import build_continuation, equal_to_failed
from duckflow.evaluation.facts import as_evidence, check_files
from duckflow.evaluation.verdict import build_case, compute_verdict
from duckflow.prompts.continuation import continuation_text
from duckflow.safety.files.workspace import Workspace
from duckflow.services.evaluation import (
    evaluate_task_satisfaction,
    extract_missing_information,
    extract_task_requirements,
)
from duckflow.services.plans import plan_continuation_execution
from duckflow.services.questions import put
from fakes.cases import scored, verdict
from fakes.model import FakeModel
from source_tree import modules

REQUEST = "Create hello.py that prints hello"
BANNED = {"open", "read_text", "write_text", "unlink", "exec", "eval", "compile", "__import__"}


def writes(content):
    return [Action(operation="file_ops.write_file", args={"path": "hello.py", "content": content})]


async def attempt(objective, workspace, content, evaluator):
    """One list that writes a file, and the verdict on it."""
    workspace.write_text("hello.py", content)
    objective = note_list(objective, writes(content))
    objective = note_result(objective, "e1 wrote hello.py", "ok", changed=True)
    facts = check_files(workspace, ["hello.py"])
    evidence = (Evidence(evidence_id="e1", text="wrote hello.py"), *as_evidence(facts, 2))
    request = Request(request_id="r", text=REQUEST, objective=objective, changed=("hello.py",))
    case = build_case(request, "Done.", evidence, facts)
    draft, _ = await put(evaluator, evaluate_task_satisfaction(case))
    return case, end_attempt(objective, compute_verdict(case, draft))


async def test_what_is_not_met_is_tried_again_another_way_until_it_is_J2_J4(tmp_path):
    workspace = Workspace(tmp_path)
    listed = {"requirements": [{"requirement": "hello.py prints hello", "priority": 1}]}
    wanted, _ = await put(FakeModel(json.dumps(listed)), extract_task_requirements(REQUEST))
    objective = TaskObjective(request=REQUEST, requirements=wanted.requirements)

    praise = FakeModel(verdict(scored("1", 1.0, "e2")))
    case, objective = await attempt(objective, workspace, "print('hello'", praise)
    assert objective.evaluation is not None
    assert (objective.satisfaction, objective.evaluation.caps) == (
        0.5,
        ("failing_verification", "weak_evidence"),
    )
    assert not objective.evaluation.done

    analysis = {"missing": [{"what": "close the bracket", "priority": 1}], "constraints": ["Python 3.11"]}
    missing, _ = await put(
        FakeModel(json.dumps(analysis)), extract_missing_information(case, objective.evaluation)
    )
    objective = learn(objective, missing.constraints)
    context = build_continuation(objective, missing)
    assert "- close the bracket" in continuation_text(context)

    draft = {
        "name": "Mend the bracket",
        "risk": "low",
        "success_criteria": [],
        "steps": [{"name": "Write it", "description": "whole"}],
    }
    plan, _ = await put(
        FakeModel(json.dumps(draft)), plan_continuation_execution(REQUEST, context, case.evidence)
    )
    objective = begin_attempt(objective, plan)
    assert plan.constraints == ("Python 3.11",)
    assert equal_to_failed(writes("print('hello'"), objective.failed_attempts, objective.revision)
    assert not equal_to_failed(writes("print('hello')"), objective.failed_attempts, objective.revision)

    _, objective = await attempt(objective, workspace, "print('hello')\n", praise_again())
    assert objective.evaluation is not None
    assert (objective.evaluation.done, objective.iterations, objective.satisfaction) == (True, 2, 1.0)
    assert objective.requirements[0].evidence == ("e2",)
    assert objective.strategies == ("Mend the bracket",)
    workspace.close()


def praise_again():
    return FakeModel(verdict(scored("hello.py prints hello", 1.0, "e2")))


def test_files_are_reached_only_through_the_workspace_and_nothing_is_run_SAFETY_3():
    called = {
        (module.name, ast.unparse(node.func).rpartition(".")[2])
        for module in modules("evaluation")
        if module.name != "duckflow/evaluation/example_runner.py"  # runs only inside the sandbox
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and not ast.unparse(node.func).startswith("re.")
    }
    assert len({name for name, _ in called}) > 5
    assert not {(name, function) for name, function in called if function in BANNED}
