"""The pacemaker's settings: every number it uses, and its purpose."""

from typing import Annotated

from pydantic import Field

from duckflow.domain.frozen import Frozen

Count = Annotated[int, Field(ge=1, le=10_000_000)]
Loops = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Dollars = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class DynamicLimits(Frozen):
    """Bounds for the number of loops of one request."""

    max_loops: Count = 20
    """Maximum loops a request is given at first; progress extends it."""

    hard_max_loops: Count = 200
    """Maximum loops of a request without asking you, even with progress (`--max-loops`)."""

    min_loops: Count = 3
    """Minimum loops of a request; if it exceeds `max_loops`, `max_loops` applies."""


class BaseLoops(Frozen):
    """Loops for each kind of task, before vitals and complexity are applied."""

    simple_question: Loops = 5
    """A question with a short answer."""

    code_analysis: Loops = 12
    """Reading and explaining code."""

    file_operation: Loops = 8
    """Creating or changing files."""

    complex_reasoning: Loops = 18
    """Reasoning in many steps."""

    multi_step_task: Loops = 15
    """Work with a plan."""

    general_chat: Loops = 6
    """Small talk."""

    creative_writing: Loops = 10
    """Writing texts."""

    debugging: Loops = 14
    """Finding and fixing a fault."""

    research: Loops = 16
    """Collecting and comparing information."""

    unknown: Loops = 8
    """A task of unknown kind."""


class LimitFactors(Frozen):
    """Weights and factors by which vitals and complexity change those loops."""

    mood_weight: Share = 0.4
    """Weight of mood in the vitals score."""

    focus_weight: Share = 0.4
    """Weight of focus in the vitals score."""

    stamina_weight: Share = 0.2
    """Weight of stamina in the vitals score."""

    low_score: Share = 0.4
    """Below this score, `low_factor` is used."""

    low_factor: Factor = 0.7
    """Multiplies the loops when the score is low."""

    high_score: Share = 0.8
    """Above this score, `high_factor` is used."""

    high_factor: Factor = 1.2
    """Multiplies the loops when the score is high."""

    complexity_weight: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.4
    """Increase at full complexity: 0.4 is 40 per cent."""


class ComplexityScale(Frozen):
    """Values at which work counts as fully complex."""

    most_files: Loops = 8
    """Files the request looked at."""

    most_messages: Loops = 15
    """Messages in the conversation."""

    error_weight: Factor = 3.0
    """Factor for the share of actions that failed."""

    when_unknown: Share = 0.3
    """Complexity while nothing is known."""


class VitalsNumbers(Frozen):
    """Amounts by which events move mood, focus and stamina."""

    usual_confidence: Share = 0.8
    """Confidence if the model states none or is small."""

    actions_counted: Annotated[int, Field(ge=1, le=100)] = 5
    """Number of recent actions that count for mood."""

    failure_weight: Share = 0.3
    """Share of mood that is lost if all of those failed."""

    praise: Share = 0.1
    """Added to mood for a request after one you rated well."""

    progress: Share = 0.1
    """Added to focus for a loop that finished a task, gave a file new content or found something new."""

    repetition: Share = 0.4
    """Subtracted from focus for a loop that repeats another."""

    window_share: Share = 0.8
    """Share of the model's window from which the prompt counts as crowded."""

    crowded: Share = 0.15
    """Subtracted from focus when the prompt becomes crowded."""

    new_direction: Share = 0.3
    """Subtracted from focus when your message changes the goal."""

    after_replan: Share = 0.5
    """Focus after a new plan."""

    after_answer: Share = 0.8
    """Focus after you answered a consultation."""

    after_request: Share = 0.7
    """Minimum focus at the start of a request."""

    loops_weight: Share = 0.8
    """Share of stamina that all loops of the limit use together."""

    progress_loop: Share = 0.25
    """Weight of a loop that made progress, compared with other loops."""

    error_cost: Share = 0.08
    """Subtracted from stamina for each unresolved tool error; your refusals do not count."""


class Thresholds(Frozen):
    """Values below which a vital counts as low."""

    mood: Share = 0.7
    """Below this, Duckflow asks you before it continues."""

    focus: Share = 0.3
    """Below this, Duckflow makes a new plan, and asks you the next time."""

    stamina: Share = 0.1
    """Below this, Duckflow stops and reports."""


class Budget(Frozen):
    """Resources other than loops that one request may use before you are asked."""

    max_tokens: Annotated[int, Field(ge=1, le=10_000_000_000)] | None = None
    """Tokens read and written by all models; no limit if left out."""

    max_cost_usd: Dollars | None = None
    """US dollars, where prices are known; no limit if left out."""

    warn_share: Share = 0.8
    """Share of either budget from which you are warned."""


class LearningSettings(Frozen):
    """How strongly the base loops follow what earlier requests used."""

    enabled: bool = True
    """Learn from earlier requests."""

    least_requests: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Completed requests of a kind required before anything is learned from them."""

    reach: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.25
    """Maximum deviation from the table: 0.25 is a quarter less or more."""


class PacemakerSettings(Frozen):
    """The pacemaker, which decides how long to work before asking."""

    dynamic_limits: DynamicLimits = DynamicLimits.model_construct()
    base_loops: BaseLoops = BaseLoops.model_construct()
    factors: LimitFactors = LimitFactors.model_construct()
    complexity: ComplexityScale = ComplexityScale.model_construct()
    vitals: VitalsNumbers = VitalsNumbers.model_construct()
    thresholds: Thresholds = Thresholds.model_construct()
    learning: LearningSettings = LearningSettings.model_construct()
    budget: Budget = Budget.model_construct()
