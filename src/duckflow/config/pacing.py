"""The pacemaker's settings: every number it works with, and what each is for."""

from typing import Annotated

from pydantic import Field

from duckflow.domain.frozen import Frozen

Count = Annotated[int, Field(ge=1, le=10_000_000)]
Loops = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Dollars = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class DynamicLimits(Frozen):
    """How far the number of loops for one request may go."""

    max_loops: Count = 20
    """The most loops a request is given at first; work that gets on is given more."""

    hard_max_loops: Count = 200
    """The most loops a request may take without asking you, however well it goes (`--max-loops`)."""

    min_loops: Count = 3
    """The fewest loops a request is given; if it is above `max_loops`, `max_loops` counts."""


class BaseLoops(Frozen):
    """How many loops each kind of task is given before vitals and complexity are looked at."""

    simple_question: Loops = 5
    """A question with a short answer."""

    code_analysis: Loops = 12
    """Reading code and saying what it does."""

    file_operation: Loops = 8
    """Making or changing files."""

    complex_reasoning: Loops = 18
    """Thinking that takes many steps."""

    multi_step_task: Loops = 15
    """Work with a plan."""

    general_chat: Loops = 6
    """Talk."""

    creative_writing: Loops = 10
    """Texts."""

    debugging: Loops = 14
    """Finding and mending a fault."""

    research: Loops = 16
    """Collecting and comparing information."""

    unknown: Loops = 8
    """A task of an unknown kind."""


class LimitFactors(Frozen):
    """What vitals and complexity make of those loops."""

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
    """How much full complexity adds: 0.4 is 40 per cent."""


class ComplexityScale(Frozen):
    """When the work counts as fully complex."""

    most_files: Loops = 8
    """Files looked at."""

    most_messages: Loops = 15
    """Messages in the conversation."""

    error_weight: Factor = 3.0
    """Multiplies the share of actions that failed."""

    when_unknown: Share = 0.3
    """Taken while nothing is known."""


class VitalsNumbers(Frozen):
    """What moves mood, focus and stamina, and how far."""

    usual_confidence: Share = 0.8
    """Used if the model says nothing about its confidence, or is a small one."""

    actions_counted: Annotated[int, Field(ge=1, le=100)] = 5
    """How many of the last actions count for mood."""

    failure_weight: Share = 0.3
    """How much of mood is lost when all of those failed."""

    praise: Share = 0.1
    """Added to mood for a request after one you rated well."""

    progress: Share = 0.1
    """Added to focus for a loop that finished a task, gave a file new content or found something new."""

    repetition: Share = 0.4
    """Taken from focus for a loop that repeats another."""

    window_share: Share = 0.8
    """The share of the model's window from which on its prompt counts as crowded."""

    crowded: Share = 0.15
    """Taken from focus when the prompt becomes crowded."""

    new_direction: Share = 0.3
    """Taken from focus when your message gives the work another goal."""

    after_replan: Share = 0.5
    """Focus after a new plan."""

    after_answer: Share = 0.8
    """Focus after you answered a consultation."""

    after_request: Share = 0.7
    """The least focus a new request starts with."""

    loops_weight: Share = 0.8
    """How much of stamina the loops of the limit take together."""

    progress_loop: Share = 0.25
    """How much of a loop a loop counts that got on."""

    error_cost: Share = 0.08
    """Taken from stamina for each error of a tool that was not resolved; your no is none."""


class Thresholds(Frozen):
    """Below which value a vital counts as low."""

    mood: Share = 0.7
    """Below it, Duckflow asks you before it goes on."""

    focus: Share = 0.3
    """Below it, Duckflow makes a new plan, and asks you the next time."""

    stamina: Share = 0.1
    """Below it, Duckflow stops and reports."""


class Budget(Frozen):
    """What one request may use before you are asked, other than loops."""

    max_tokens: Annotated[int, Field(ge=1, le=10_000_000_000)] | None = None
    """Tokens read and written by all models; left out, there is no such limit."""

    max_cost_usd: Dollars | None = None
    """US dollars, where prices are known; left out, there is no such limit."""

    warn_share: Share = 0.8
    """The share of either from which on you are warned."""


class LearningSettings(Frozen):
    """How far the loops to start from follow what earlier requests really used."""

    enabled: bool = True
    """Whether they follow at all."""

    least_requests: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Done requests of a kind that are needed before anything is learned from them."""

    reach: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.25
    """How far from the table it may go: 0.25 is a quarter less or more."""


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
