"""The settings, one model per part, which says what that is; the string under a field says what it does."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from duckflow.config.mcp import McpSettings, from_home
from duckflow.config.pacing import PacemakerSettings
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.transitions import Transitions
from duckflow.domain.work.objective import EvaluationRules

SandboxChoice = Literal["auto", "bubblewrap", "namespaces", "landlock", "external", "none"]


class ShellSettings(Frozen):
    """What a command may take, and how it is kept in."""

    sandbox: SandboxChoice = "auto"
    """What keeps commands in: `auto` the best that works, `external` this machine, `none` your answers."""

    network: bool = False
    """Let every command use the network, without a question."""

    timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 120
    """Seconds a command may take if the model asks for no other time."""

    max_timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 600
    """The most seconds the model may ask for."""

    max_output_bytes: Annotated[int, Field(ge=1_000, le=1_000_000)] = 16_000
    """Bytes of a command's output that are kept, half of its beginning and half of its end."""

    max_processes: Annotated[int, Field(ge=8, le=100_000)] = 512
    """Processes a command may have at once; with more it is stopped."""

    memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] = 4096
    """Memory all processes of a command may hold together; with more it is stopped."""

    file_mb: Annotated[int, Field(ge=1, le=10_000_000)] = 2048
    """The largest file a command may write."""

    disk_mb: Annotated[int, Field(ge=1, le=100_000_000)] = 16_384
    """Room on the disk that all a command writes may take; with more it is stopped."""


class CheckSettings(Frozen):
    """What the program runs by itself to see whether work is right, on a copy and in the sandbox."""

    after_edit: bool = True
    """Let quick tools (the project's linter, else ruff or a compiler) look at each file that was written."""

    edit_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 5.0
    """Seconds that may take after an edit."""

    before_verdict: bool = True
    """Run examples of the request, tests of the changed files and slower tools before a verdict."""

    verdict_timeout_s: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] = 60.0
    """Seconds that may take, all together."""


class UndoSettings(Frozen):
    """What is kept so that changes can be taken back."""

    max_mb: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    """Megabytes of old file contents, compressed; past it the oldest requests go first. 0 keeps none."""

    command_files: Annotated[int, Field(ge=0, le=1_000_000)] = 5000
    """Files copied before a command so that undo covers it too; a folder with more is not. 0 copies none."""

    command_mb: Annotated[int, Field(ge=0, le=100_000)] = 32
    """The most megabytes of files copied before a command."""


class MemorySettings(Frozen):
    """What is kept for later sessions; `duckflow memory list` shows it."""

    enabled: bool = True
    """Whether anything is kept, and shown to models in later sessions."""

    max_entries: Annotated[int, Field(ge=1, le=5_000)] = 500
    """The most texts kept; past it, what was not used for the longest time goes."""


class GateSettings(Frozen):
    """What makes a change so large that it is asked about in every mode."""

    many_files: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    """Files that may change before you are asked again, in modes that do not ask anyway."""

    large_bytes: Annotated[int, Field(ge=1_000, le=64_000_000)] = 200_000
    """Bytes that may be written at once before you are asked."""


Language = Literal["auto", "ja", "en"]
Name = Annotated[str, Field(min_length=1, max_length=500)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Window = Annotated[int, Field(ge=512, le=10_000_000)]
HomePath = Annotated[Path, AfterValidator(lambda path: Path(from_home(str(path))))]


class EmbeddedSettings(Frozen):
    """The model that runs inside Duckflow, without a key and without a network."""

    model: Name = "qwen2.5-coder-1.5b"
    """Which of the known models to use; `duckflow model list` shows them."""

    path: HomePath | None = None
    """A GGUF file of your own, used instead of a known model; `~` is your home."""

    threads: Count | None = None
    """Processor threads; left out, all cores but one."""

    window: Window = 8192
    """Tokens of prompt and answer together, instead of `llm.window`; more needs more memory."""

    drafts: Literal["auto", "on", "off"] = "auto"
    """Guess words that repeat what was read, which is quicker on x86-64; `auto` does so only there."""

    prompts_mb: Annotated[int, Field(ge=0, le=1_000_000)] = 500
    """Megabytes of what it has read, kept on disk so that it is never read twice; 0 keeps nothing."""


class LlmSettings(Frozen):
    """Which models are asked, and how patiently."""

    model: Name | None = None
    """The model for everything, as `provider:model`; left out, one is chosen at the start."""

    creative: Name | None = None
    """The model that plans and writes, if it is to be another than `model`."""

    fast: Name | None = None
    """The model for short side questions, if it is to be another than `model`."""

    evaluator: Name | None = None
    """The model that judges results, if it is to be another than `model`."""

    by_task: bool = True
    """Whether simple work goes to the `fast` model, if that is another one."""

    small: bool | Literal["auto"] = "auto"
    """Whether to lead the model in small, narrow steps; `auto` does so for small models."""

    window: Window | None = None
    """Tokens of prompt and answer together that every model takes; left out, its server or its name tells."""

    sees: bool | Literal["auto"] = "auto"
    """Whether the model is shown pictures that you mention; `auto` goes by its name. Small ones never are."""

    candidates: Annotated[int, Field(ge=1, le=50)] = 4
    """Drafts of a file a small model may make; of those the one that passes most checks is taken."""

    candidates_time_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 60.0
    """Seconds after which no further draft is begun."""

    native_tools: bool | Literal["auto"] = "auto"
    """Whether models call operations through their provider's own interface; `auto`: large models do."""

    max_retries: Annotated[int, Field(ge=0, le=20)] = 4
    """How often a call is repeated when the provider is busy or breaks off."""

    time_limit_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    """Seconds one call may take."""

    max_tokens: Count = 8192
    """The longest answer asked for, in tokens; room to think comes on top of it."""

    effort: EffortChoice = "auto"
    """How much models that can think do so; `auto` goes by the question, and by how the work goes."""

    embedded: EmbeddedSettings = EmbeddedSettings.model_construct()


class RulesSettings(Frozen):
    """The project's own rules, which go into every prompt."""

    files: tuple[Name, ...] = ("AGENTS.md", "DUCKFLOW.md")
    """Files looked for in the workspace, by name or by path inside it; all that exist are read."""

    max_bytes: Count = 65_536
    """If a rules file is longer, you are asked whether to cut it, to leave it out, or to stop."""

    @field_validator("files")
    @classmethod
    def _inside(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        for name in files:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise PydanticCustomError("outside_workspace", "not inside the workspace")
        return files


class PromptSettings(Frozen):
    """How much of the model's window each part of a prompt may take."""

    base_tokens: Annotated[int, Field(ge=300, le=100_000)] = 500
    """Tokens for who Duckflow is, the facts of the session and what was spoken of before."""

    main_tokens: Annotated[int, Field(ge=100, le=100_000)] = 800
    """Tokens for the work in hand: step, task, goal, constraints, plan."""

    specialized_tokens: Annotated[int, Field(ge=100, le=100_000)] = 1200
    """Tokens for the procedure of a step; one that does not fit is left out."""


class UiSettings(Frozen):
    """The conversation on a terminal."""

    editing_mode: Literal["emacs", "vi"] = "emacs"
    """The keys of the line you type on."""

    theme: Literal["auto", "light", "dark", "none"] = "auto"
    """Colours: `auto` takes those of your terminal, `light` and `dark` suit its background."""

    notify: Literal["off", "bell", "desktop"] = "off"
    """How you are called when it needs you or is done: a bell, or a notice of the desktop (OSC 9)."""

    titles: bool = True
    """Let the fast model give each session a title, for `/resume` and `duckflow sessions list`."""


class HookSettings(Frozen):
    """Commands of yours that run around actions and requests."""

    enabled: bool = True
    """Whether hooks run."""

    files: tuple[HomePath, ...] = ()
    """More files with hooks, besides the `hooks.json` next to this one: `~/.claude/settings.json`, say."""


class PluginSettings(Frozen):
    """Python packages that bring operations, providers and checks."""

    enabled: bool = True
    """Whether plugins that are installed are loaded."""

    disabled: tuple[Name, ...] = ()
    """Names of plugins that are not; `/plugins` lists them."""


class SkillSettings(Frozen):
    """Skills: instructions that the model reads when it needs them."""

    enabled: bool = True
    """Whether skills are offered to the model."""

    prompt_tokens: Annotated[int, Field(ge=50, le=20_000)] = 400
    """Tokens that names and descriptions of skills may take in every prompt."""


class TracingSettings(Frozen):
    """Traces for OpenTelemetry."""

    enabled: bool = False
    """Whether requests, model calls, actions and checks are written as spans; see docs/tracing.md."""


class WebSettings(Frozen):
    """Pages of the web, which the model may ask for."""

    fetch: bool = False
    """Whether there is `web.fetch`; you are asked for each site."""

    private: bool = False
    """Whether it may fetch from this machine and from private networks."""

    max_chars: Annotated[int, Field(ge=500, le=1_000_000)] = 30_000
    """Characters of a page that are kept, half of its beginning and half of its end."""

    max_bytes: Annotated[int, Field(ge=1_000, le=100_000_000)] = 2_000_000
    """Bytes that are read of a page."""

    timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """Seconds it may take."""


class Settings(Frozen):
    """Everything that can be set."""

    language: Language = "auto"
    """The language Duckflow speaks; `auto` follows the locale."""

    mode: Mode = "ask"
    """What may happen without asking: plan (nothing changes), ask, edits, auto."""

    llm: LlmSettings = LlmSettings.model_construct()
    transitions: Transitions = Transitions.model_construct()
    duck_pacemaker: PacemakerSettings = PacemakerSettings.model_construct()
    evaluation: EvaluationRules = EvaluationRules.model_construct()
    checks: CheckSettings = CheckSettings.model_construct()
    rules: RulesSettings = RulesSettings.model_construct()
    prompt: PromptSettings = PromptSettings.model_construct()
    ui: UiSettings = UiSettings.model_construct()
    tracing: TracingSettings = TracingSettings.model_construct()
    hooks: HookSettings = HookSettings.model_construct()
    skills: SkillSettings = SkillSettings.model_construct()
    plugins: PluginSettings = PluginSettings.model_construct()
    undo: UndoSettings = UndoSettings.model_construct()
    memory: MemorySettings = MemorySettings.model_construct()
    shell: ShellSettings = ShellSettings.model_construct()
    mcp: McpSettings = McpSettings.model_construct()
    web: WebSettings = WebSettings.model_construct()
    gate: GateSettings = GateSettings.model_construct()
