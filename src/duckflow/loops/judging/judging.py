"""Judges requests: finds requirements while the work runs, and gives verdicts based on evidence."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duckflow.domain.decision import TALK, Action, Decision
from duckflow.domain.errors import BadAnswer, ProviderError
from duckflow.domain.events import AttemptPlanned, ErrorReported, Evaluated, Reply, RequirementsFound
from duckflow.domain.frozen import replace
from duckflow.domain.state import Request
from duckflow.domain.wishes import plain_wish
from duckflow.domain.work.checks import CheckResult, accept_failure
from duckflow.domain.work.objective import EvaluationCase, SatisfactionEvaluation, TaskObjective
from duckflow.evaluation.continuation import build_continuation, equal_to_failed
from duckflow.evaluation.facts import Fact, as_evidence
from duckflow.evaluation.verdict import (
    build_case,
    compute_verdict,
    judge_by_facts,
    needs_evaluation,
    objections,
)
from duckflow.i18n.catalogue import text
from duckflow.loops.judging.case_evidence import CaseEvidenceCollector
from duckflow.loops.judging.verification import Verification
from duckflow.loops.session import SessionPart
from duckflow.loops.thinking.advisor import Advisor
from duckflow.prompts.continuation import difference_text, plan_text, retry_text
from duckflow.prompts.evidence import evidence_in, pictures_in
from duckflow.prompts.layers import requirements_text
from duckflow.prompts.questions import summary_of
from duckflow.services.evaluation import (
    VerdictDraft,
    evaluate_task_satisfaction,
    extract_missing_information,
    extract_task_requirements,
    named_requirements,
    plain_missing,
    plain_requirements,
)
from duckflow.services.plans import plan_continuation_execution, plan_initial_execution

Finding = Literal["tests", "done", "not_judged", "again", "asked", "exhausted"]
"""Result of judging. `tests`: the project's tests must run first; `not_judged`: no evaluator answered;
`again`: another attempt is planned; `asked`: the model asked the user; `exhausted`: no attempts are left."""


@dataclass(eq=False)
class Judging(SessionPart):
    """Judges the open request of a session."""

    _advisor: Advisor
    _verifying: Verification
    _collector: CaseEvidenceCollector
    _max_iterations: int
    _judges: bool = True
    """False for a session whose work the program proves in another way: nothing is judged."""
    _search: asyncio.Task[None] | None = None

    def begin(self, decision: Decision, named: Sequence[str] = ()) -> None:
        """Start a background search for requirements, unless the decision named them or is only talk (J1)."""
        request = self._state.request
        if request is None or request.objective.requirements or not self._judges:
            return  # words of the user during the work change them once, before the verdict
        wanted = named_requirements(named)
        if wanted and request.profile not in TALK:
            self._session.record(RequirementsFound(requirements=wanted))
            return
        running = self._search is not None and not self._search.done()
        if decision.actions and request.profile not in TALK and not running:
            self._search = asyncio.create_task(self._find_requirements(request, tells=True))

    async def refuses(self, actions: Sequence[Action]) -> bool:
        """Return whether these actions were in a failed attempt (J4). Small models may repeat theirs."""
        request = self._state.request
        if request is None or not actions or await self._advisor.is_small("creative"):
            return False
        objective = request.objective
        return equal_to_failed(actions, objective.failed_attempts, objective.revision)

    async def replan(self) -> None:
        """Ask another model for a new plan, if one can answer (H5)."""
        state, request = self._state, self._state.request
        if request is None:
            return
        known = summary_of(state, with_request=False), evidence_in(state)
        plan = await self._advisor.ask(plan_initial_execution(request.objective.request, *known))
        if plan is not None:
            number = request.objective.current.number
            self._session.record(AttemptPlanned(number=number, plan=plan, told=plan_text(plan)))

    async def judge(self) -> Finding:
        """Judge the request by the evidence. If it is not done, plan another attempt."""
        request = self._state.request
        if request is None or not self._judges:
            return "done"
        if self._only_undone(request) or await self._only_replied(request):
            self.stop()
            return "done"
        if request.objective.added and not self._is_talk(request):
            request = await self._requirements(request)  # the user's last words may ask for something else
        if await self._verifying.prepare():
            return "tests"
        verified = await self._verifying.run()
        if request.profile is None and not request.acted:
            request = await self._requirements(request)  # this search also finds the kind of task
        if self._is_talk(request) and await self._collector.missing_claims(request, self._state.reply):
            wanted = plain_requirements(request.objective.request)
            found = RequirementsFound(requirements=wanted, by="program", profile="file_operation")
            self._session.record(found)
            request = self._state.request or request
        if self._is_talk(request):
            if verified is None or not verified.binding or verified.good:
                self.stop()
                return "done"
        else:
            request = await self._requirements(request)
        case, evaluation = await self._evaluate(request, verified)
        if evaluation.done:
            if case.changed and await self._advisor.is_small("creative"):
                ran = any(one.good and one.kind != "diagnostic" for one in case.checks)
                self._session.record(Reply(text=text("settled.done") if ran else await self._to_try()))
            return "done"
        if not case.changed and self._state.reply.rstrip().endswith(("?", "？")):
            return "asked"
        if evaluation.by == "nobody":
            return "not_judged"
        if request.objective.iterations + 1 >= self._max_iterations:
            return "exhausted"
        await self._plan_next((self._state.request or request).objective, case, evaluation)
        return "again"

    async def _to_try(self) -> str:
        request = self._state.request
        there = [path for path in request.changed if path not in request.removed] if request else []
        return await self._collector.how_to_try(there) or text("settled.done")

    async def settle(self, error: ProviderError) -> bool:
        """Judge the work after the model failed. Return True if the request is done (A6, M3).

        If the evaluator is the same unreachable model, only the checks decide.
        """
        request = self._state.request
        if request is None:
            return True
        objective = request.objective
        if objective.evaluation is not None and not objective.current.tried:
            return objective.evaluation.done  # nothing was done since the last verdict
        verified = await self._verifying.run()
        reached = isinstance(error, BadAnswer) or not self._advisor.same_model("evaluator", "creative")
        if reached:
            request = await self._requirements(request)
        self.stop()
        _, evaluation = await self._evaluate(request, verified, asks=reached)
        return evaluation.done

    def _only_undone(self, request: Request) -> bool:
        """Return whether the user wanted an undo and nothing else was done: the program did it, exactly."""
        state, objective = self._state, request.objective
        own = [one for one in state.change_sets if one.request_id == request.request_id]
        undone = bool(own) and all(one.by_undo for one in own)
        # In a conversation, tests that fail afterwards are no reason to do again what the user wanted undone.
        return undone and (state.attended or not state.verify) and plain_wish(objective.request) == "undo"

    async def _only_replied(self, request: Request) -> bool:
        """Return whether a small model gave an answer and has changed nothing, which no attempt improves."""
        last = self._state.transcript[-1] if self._state.transcript else None
        replied = last is not None and last.evidence_id is None and last.role == "assistant"
        if not replied or request.changed or request.profile not in TALK:
            return False
        if self._state.verify and plain_wish(request.text) is None:
            return False  # the model may have answered where a change was wanted
        if not await self._advisor.is_small("creative"):
            return False
        return not await self._collector.missing_claims(request, self._state.reply)

    def _is_talk(self, request: Request) -> bool:
        ran = _ran_anything(request, self._state.verify)
        acted = ran or request.attempted
        return not needs_evaluation(
            request.profile, changed_anything=bool(request.changed), ran_anything=acted
        )

    async def _evaluate(
        self, request: Request, verified: CheckResult | None, *, asks: bool = True
    ) -> tuple[EvaluationCase, SatisfactionEvaluation]:
        now = self._state.request or request
        seen = await self._collector.collect(now)
        ran = _ran_anything(now, self._state.verify)
        own = replace(now, changed=seen.changed)
        passed = verified.good if self._state.verify and verified and verified.binding else None
        results = seen.results
        if not await self._advisor.is_small("evaluator"):
            # A large model can tell whether the request was to fix failures that existed before.
            results = tuple(
                replace(one, binding=one.binding and one.compared and not one.before) for one in results
            )
        if now.objective.failures_accepted:
            results = tuple(accept_failure(one) for one in results)
        checks = seen.checks
        if verified is not None and not verified.evidence_id:
            (own_check,) = as_evidence((verified,), self._state.evidence_count + 1 + len(checks))
            verified, checks = replace(verified, evidence_id=own_check.evidence_id), (*checks, own_check)
        results += (verified,) if verified else ()
        evidence = (*seen.found, *checks)
        case = build_case(
            own,
            await self._told(now),
            evidence,
            seen.facts,
            results,
            ran=ran,
            passed=passed,
            only_comments=seen.only_comments,
            missed=seen.missed,
        )
        case = replace(case, pictures=pictures_in(self._state))
        if not asks and passed is None and case.verification == "passed":
            # The model failed before it finished, so passing tests do not prove that the request is done.
            case = replace(case, verification="none")
        # For talk, the verifying command decides without an evaluator.
        asks = asks and not self._is_talk(now)
        evaluation = await self._verdict(case, seen.facts) if asks else compute_verdict(case, None)
        # List failures of commands and checks before other missing things.
        failed = (
            one.aspect for one in results if one.state == "failed" and not one.before and not one.accepted
        )
        missing = dict.fromkeys((*failed, *evaluation.missing_aspects))
        evaluation = replace(evaluation, missing_aspects=tuple(missing))
        iteration = now.objective.iterations + 1
        self._session.record(
            Evaluated(iteration=iteration, evaluation=evaluation, checks=checks, results=results)
        )
        return case, evaluation

    async def _told(self, request: Request) -> str:
        """Return the replies of the request: one may answer what a later one does not repeat."""
        small = await self._advisor.is_small("evaluator")
        return self._state.reply if small else "\n\n".join(request.replies) or self._state.reply

    def stop(self) -> None:
        """Cancel the search for requirements."""
        if self._search is not None:
            self._search.cancel()
            self._search = None

    async def aclose(self) -> None:
        """Cancel the search and wait until it has ended."""
        search = self._search
        self.stop()
        if search is not None:
            await asyncio.gather(search, return_exceptions=True)

    async def _requirements(self, request: Request) -> Request:
        if self._search is not None:
            await asyncio.gather(self._search, return_exceptions=True)
            self._search = None
        now = self._state.request or request
        missing = not now.objective.requirements or now.objective.added
        if missing and not self._is_talk(now):
            await self._find_requirements(now)
        return self._state.request or now

    async def _find_requirements(self, request: Request, *, tells: bool = False) -> None:
        """Ask a model for the requirements. With `tells`, the deciding model sees them, too."""
        asked, known = request.objective.request, request.objective.requirements
        stopped = request.objective.stopped
        added = request.objective.added if known or stopped else ""
        summary = summary_of(self._state, with_request=False)
        found = await self._advisor.ask(
            extract_task_requirements(asked, summary, known, added, stopped=stopped)
        )
        now = self._state.request
        if now is None or (now.request_id, now.objective.request) != (request.request_id, asked):
            return
        by = "program" if found.requirements == plain_requirements(asked) else "model"
        talk = (now.profile or found.profile) in TALK and not (now.acted or now.attempted)
        wanted = () if talk else found.requirements
        tells = tells and by == "model" and not await self._advisor.is_small("creative")
        told = requirements_text(wanted) if tells else ""
        replaces = found.replaces and bool(added)
        self._session.record(
            RequirementsFound(
                requirements=wanted,
                by=by,
                profile=found.profile,
                told=told,
                replaces=replaces,
                failures_accepted=found.failures_accepted,
            )
        )

    async def _verdict(self, case: EvaluationCase, facts: Sequence[Fact]) -> SatisfactionEvaluation:
        by_facts = judge_by_facts(case, facts)
        try:
            if by_facts is not None and await self._advisor.is_small("evaluator"):
                return by_facts
            return compute_verdict(case, await self._ask_evaluator(case))
        except ProviderError as error:
            self._session.record(ErrorReported.of(error))
            return compute_verdict(case, None)

    async def _ask_evaluator(self, case: EvaluationCase) -> VerdictDraft | None:
        """Return the evaluator's verdict. One that cites unknown evidence goes back to it once (J3)."""
        draft = await self._advisor.ask(evaluate_task_satisfaction(case))
        if draft is None or not (wrong := objections(case, draft)):
            return draft
        if await self._advisor.is_small("evaluator"):
            return draft
        try:
            return await self._advisor.ask(evaluate_task_satisfaction(case, draft, wrong)) or draft
        except ProviderError:
            return draft  # the first verdict is readable, so it counts

    async def _plan_next(
        self, objective: TaskObjective, case: EvaluationCase, evaluation: SatisfactionEvaluation
    ) -> None:
        """Find out what is missing, and plan another attempt that works differently (J4)."""
        # If the verdict says what is missing, no further question is needed to plan the next attempt.
        missing = plain_missing(evaluation)
        if not missing.missing:
            missing = await self._advisor.ask(extract_missing_information(case, evaluation))
        context = build_continuation(objective, missing)
        plan = await self._advisor.ask(plan_continuation_execution(case.request, context, case.evidence))
        small = await self._advisor.is_small("creative")
        told = retry_text(evaluation) if small else f"{difference_text(context)}\n\n{plan_text(plan)}"
        number = objective.current.number
        self._session.record(AttemptPlanned(number=number, plan=plan, learned=missing.constraints, told=told))


def _ran_anything(request: Request, verify: str | None) -> bool:
    """Return whether a command other than the verifying command was run."""
    own = (verify or "").strip()
    return request.ran and (not own or any(one.command.strip() != own for one in request.commands))
