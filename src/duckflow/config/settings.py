"""The settings: one model per section. The docstrings also appear in the manual."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from duckflow.config.mcp import McpSettings, from_home
from duckflow.domain.frozen import Frozen
from duckflow.domain.hosts import Host
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.transitions import Transitions

SandboxChoice = Literal["auto", "bubblewrap", "namespaces", "landlock", "external", "none"]
Language = Literal["auto", "ja", "en"]
Name = Annotated[str, Field(min_length=1, max_length=500)]
Suffix = Annotated[str, Field(pattern=r"^\.[\w.+-]{1,20}$")]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Window = Annotated[int, Field(ge=512, le=10_000_000)]
HomePath = Annotated[Path, AfterValidator(lambda path: Path(from_home(str(path))))]


class ShellSettings(Frozen):
    """Limits and sandbox of shell commands."""

    sandbox: SandboxChoice = "auto"
    """Sandbox: `auto` picks the best, `external` means this machine is one, `none` asks before commands."""

    network: bool = False
    """Let every command use the whole network without asking."""

    hosts: tuple[Host, ...] = ()
    """Hosts that every command may reach: `github.com`, `*.github.com`; `registries` for packages."""

    tokens: dict[Name, Name] = Field(default_factory=dict[str, str])
    """Tokens lent to hosts: the host, and the variable that holds its token. Commands never see it."""

    private_hosts: bool = False
    """Let commands reach allowed hosts in private networks and on this machine."""

    timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 120
    """Time limit in seconds if the model requests no other."""

    max_timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 600
    """Maximum time limit the model may request, in seconds."""

    max_output_bytes: Annotated[int, Field(ge=1_000, le=1_000_000)] = 12_000
    """Bytes of a command's output that are kept, half from its beginning and half from its end."""

    max_processes: Annotated[int, Field(ge=8, le=100_000)] = 512
    """Maximum processes of a command at once; it is stopped beyond that."""

    memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] = 4096
    """Memory for all processes of a command together; it is stopped beyond that."""

    file_mb: Annotated[int, Field(ge=1, le=10_000_000)] = 2048
    """Largest file a command may write."""

    disk_mb: Annotated[int, Field(ge=1, le=100_000_000)] = 16_384
    """Disk space for everything a command writes; it is stopped beyond that."""


class DynamicLimits(Frozen):
    """Bounds for the number of loops of one request."""

    max_loops: Count = 20
    """Maximum loops a request is given at first; progress extends it."""

    hard_max_loops: Count = 200
    """Maximum loops of a request without asking you, even with progress (`--max-loops`)."""


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

    max_cost_usd: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """US dollars, where prices are known; no limit if left out."""


class LearningSettings(Frozen):
    """Learning from earlier requests."""

    enabled: bool = True
    """Adapt the number of loops to what earlier requests used."""


class PacemakerSettings(Frozen):
    """The pacemaker, which decides how long to work before asking."""

    dynamic_limits: DynamicLimits = DynamicLimits.model_construct()
    thresholds: Thresholds = Thresholds.model_construct()
    learning: LearningSettings = LearningSettings.model_construct()
    budget: Budget = Budget.model_construct()


class EvaluationSettings(Frozen):
    """Conditions for a request to count as done."""

    max_iterations: Annotated[int, Field(ge=1, le=100)] = 3
    """Maximum evaluations of a request between two of your answers."""

    verify: Annotated[str, Field(max_length=2_000)] = ""
    """Command that must succeed before any request counts as done; it is run without asking."""


class CheckSettings(Frozen):
    """Checks the program runs automatically to verify work, on a copy and in the sandbox."""

    after_edit: bool = True
    """Run quick tools (the project's linter, otherwise ruff or a compiler) on each written file."""

    edit_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 5.0
    """Time limit of the checks after an edit, in seconds."""

    before_verdict: bool = True
    """Run examples from the request, tests of the changed files and slower tools before a verdict."""

    verdict_timeout_s: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] = 60.0
    """Time limit of all checks before a verdict together, in seconds."""


class UndoSettings(Frozen):
    """Storage for undoing changes."""

    max_mb: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    """Megabytes kept for undo, compressed. Above that, the oldest requests can't be undone. 0 keeps none."""

    command_files: Annotated[int, Field(ge=0, le=1_000_000)] = 5000
    """Files copied before a command for undo; folders with more are not copied. 0 copies none."""

    command_mb: Annotated[int, Field(ge=0, le=100_000)] = 32
    """Maximum megabytes of files copied before a command."""


class MemorySettings(Frozen):
    """Notes kept for later sessions; `duckflow memory list` shows them."""

    enabled: bool = True
    """Keep notes, and show them to models in later sessions."""


class GateSettings(Frozen):
    """Size from which a change needs your approval in every mode."""

    many_files: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    """Files that may change before you are asked again, in modes that do not ask otherwise."""

    large_bytes: Annotated[int, Field(ge=1_000, le=64_000_000)] = 200_000
    """Bytes that may be written at once before you are asked."""


class EmbeddedSettings(Frozen):
    """The model that runs inside Duckflow, without a key and without a network."""

    model: Name = "qwen2.5-coder-1.5b"
    """Known model to use; `duckflow model list` shows them."""

    path: HomePath | None = None
    """A GGUF file of your own, used instead of a known model; `~` is your home."""

    threads: Count | None = None
    """Processor threads; all cores but one if left out."""

    window: Window = 8192
    """Tokens of prompt and answer together, instead of `llm.window`; more needs more memory."""

    drafts: Literal["auto", "on", "off"] = "auto"
    """Speed up output by guessing words from the input; `auto` does so on x86-64, where it helps."""

    prompts_mb: Annotated[int, Field(ge=0, le=1_000_000)] = 500
    """Megabytes of processed prompts kept on disk, so that they are not processed again; 0 keeps none."""

    @property
    def full_name(self) -> str:
        """Full name of the model that `embedded` alone means."""
        return f"embedded:{self.path or self.model}"


class LlmSettings(Frozen):
    """Models to use, and how patiently to wait for them."""

    model: Name | None = None
    """The model for everything, as `provider:model`; chosen at the start if left out."""

    creative: Name | None = None
    """Model for planning and writing, if other than `model`."""

    fast: Name | None = None
    """Model for short side questions, if other than `model`."""

    evaluator: Name | None = None
    """Model for judging results, if other than `model`."""

    by_task: bool = True
    """Send simple work to the `fast` model, if it is another one."""

    small: bool | Literal["auto"] = "auto"
    """Guide the model in small, narrow steps; `auto` does so for small models."""

    window: Window | None = None
    """Tokens of prompt and answer together for every model; taken from its server or name if left out."""

    sees: bool | Literal["auto"] = "auto"
    """Show the model pictures that you mention; `auto` depends on its name. Small models never see them."""

    candidates: Annotated[int, Field(ge=1, le=50)] = 4
    """Drafts of a file a small model may write; the one that passes most checks is used."""

    native_tools: bool | Literal["auto"] = "auto"
    """Let models call operations through their provider's own interface; `auto` does so for large models."""

    max_retries: Annotated[int, Field(ge=0, le=20)] = 4
    """Maximum repeats of a call when the provider is busy or the connection breaks."""

    time_limit_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    """Time limit of one call, in seconds."""

    max_tokens: Count = 8192
    """Maximum tokens of an answer; thinking comes on top."""

    effort: EffortChoice = "auto"
    """Thinking effort of models that support it; `auto` depends on the question and the work so far."""

    embedded: EmbeddedSettings = EmbeddedSettings.model_construct()


class RulesSettings(Frozen):
    """The project's own rules, which go into every prompt."""

    files: tuple[Name, ...] = ("AGENTS.md", "DUCKFLOW.md")
    """Files to look for in the workspace, by name or relative path; all that exist are read."""

    max_bytes: Count = 65_536
    """If a rules file is longer, you are asked whether to cut it, leave it out, or stop."""

    @field_validator("files")
    @classmethod
    def _inside(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        for name in files:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise PydanticCustomError("outside_workspace", "not inside the workspace")
        return files


class UiSettings(Frozen):
    """The conversation on a terminal."""

    editing_mode: Literal["emacs", "vi"] = "emacs"
    """Key bindings of the input line."""

    theme: Literal["auto", "light", "dark", "none"] = "auto"
    """Colours: `auto` uses those of your terminal, `light` and `dark` suit its background."""

    notify: Literal["auto", "off", "bell", "desktop"] = "auto"
    """Notification when Duckflow needs you or is done: a bell, or a desktop notice (OSC 9). `auto` sends
    notices where the terminal is known to show them."""

    vitals: Literal["auto", "full"] = "auto"
    """Vitals below the prompt: `auto` shows their numbers only when they matter, `full` always."""

    titles: bool = True
    """Let the fast model give each session a title, for `/resume` and `duckflow sessions list`."""


class HookSettings(Frozen):
    """Your commands that run around actions and requests."""

    enabled: bool = True
    """Run hooks."""

    files: tuple[HomePath, ...] = ()
    """More hook files besides the `hooks.json` next to this one, such as `~/.claude/settings.json`."""


class PluginSettings(Frozen):
    """Python packages that add operations, providers and checks."""

    enabled: bool = True
    """Load installed plugins."""

    disabled: tuple[Name, ...] = ()
    """Names of plugins that are not loaded; `/plugins` lists them."""


class SkillSettings(Frozen):
    """Skills: instructions that the model reads when it needs them."""

    enabled: bool = True
    """Offer skills to the model."""

    prompt_tokens: Annotated[int, Field(ge=50, le=20_000)] = 1_000
    """Maximum tokens of the skills' names and descriptions in each prompt."""


class AgentSettings(Frozen):
    """Agents: helpers of the model that explore or work on copies of the folder."""

    enabled: bool = True
    """Let the model start agents."""

    parallel: Annotated[int, Field(ge=1, le=16)] = 4
    """Agents that work at the same time; with the embedded model it is one."""


class ServerCommand(Frozen):
    """A language server that Duckflow does not know."""

    command: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Program and its arguments, so that it speaks over its standard input and output."""

    suffixes: Annotated[tuple[Suffix, ...], Field(min_length=1)]
    """Ends of the names of the files it is for, such as `.zig`."""


class CodeSettings(Frozen):
    """Code intelligence from the language servers that you have installed."""

    enabled: bool = True
    """Use language servers; they run in the sandbox, with the limits of commands."""

    idle_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 600.0
    """Seconds after which a server that is not used is stopped."""

    servers: dict[Name, ServerCommand] = Field(default_factory=dict[str, ServerCommand])
    """More servers, each in a table `[code.servers.NAME]`; a known name replaces that server."""


class TracingSettings(Frozen):
    """Tracing with OpenTelemetry."""

    enabled: bool = False
    """Record requests, model calls, actions and checks as spans; see docs/tracing.md."""


_ADDRESS = lazy_regex(r"https?://[^\s/@]+(/\S*)?")


def _search_service(given: str) -> str:
    if given in ("", "brave", "exa", "model") or _ADDRESS.fullmatch(given):
        return given
    raise ValueError("is no search service: use brave, exa, model, or the address of a SearXNG")


class WebSettings(Frozen):
    """Web pages that the model may request."""

    fetch: bool = False
    """Offer `web.fetch`; you are asked for each site."""

    search: Annotated[str, AfterValidator(_search_service)] = ""
    """Offer `web.search` by this service: `brave` or `exa` (with BRAVE_API_KEY or EXA_API_KEY), the address
    of a SearXNG, or `model` for the search of your model's provider (OpenAI, Anthropic)."""

    private: bool = False
    """Allow fetching from this machine and from private networks."""

    max_chars: Annotated[int, Field(ge=500, le=1_000_000)] = 30_000
    """Characters of a page that are kept, half from its beginning and half from its end."""


class FleetSettings(Frozen):
    """Notices of the fleet's workers when a run asks or ends."""

    command: str = ""
    """Shell command to run for each notice, which it gets as JSON on its standard input."""

    webhook: str = ""
    """Address to send each notice to: `https://…`, or `http://` on this machine. Redirects are refused."""

    timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 10.0
    """Time limit of the command, and of a request to the webhook."""

    tries: Annotated[int, Field(ge=1, le=20)] = 6
    """Number of tries for a notice that fails, at growing intervals."""


class Settings(Frozen):
    """All settings."""

    language: Language = "auto"
    """Language of Duckflow; `auto` follows the locale."""

    mode: Mode = "ask"
    """Permission mode: plan (nothing changes), ask, edits, auto."""

    llm: LlmSettings = LlmSettings.model_construct()
    transitions: Transitions = Transitions.model_construct()
    duck_pacemaker: PacemakerSettings = PacemakerSettings.model_construct()
    evaluation: EvaluationSettings = EvaluationSettings.model_construct()
    checks: CheckSettings = CheckSettings.model_construct()
    rules: RulesSettings = RulesSettings.model_construct()
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
    agents: AgentSettings = AgentSettings.model_construct()
    gate: GateSettings = GateSettings.model_construct()
    code: CodeSettings = CodeSettings.model_construct()
    fleet: FleetSettings = FleetSettings.model_construct()
