"""Names that are never touched without a question, and those that are never touched (as data)."""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Literal

from duckflow.safety.files.paths import fold

Protection = Literal["none", "asks", "denied"]

STRENGTH: dict[Protection, int] = {"none": 0, "asks": 1, "denied": 2}

ASKS: dict[str, tuple[str, ...]] = {
    "version control": (
        ".git",
        "git~[0-9]",
        ".gitmodules",
        ".gitconfig",
        ".config/git",
        ".hg",
        ".svn",
        ".jj",
    ),
    "shell start-up": (
        ".profile",
        ".bash_*",
        ".bashrc",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".logout",
        ".inputrc",
        ".xprofile",
        ".xinitrc",
        ".pam_environment",
        ".config/fish",
        ".config/autostart",
        ".config/systemd",
    ),
    "editor configuration": (
        ".vscode",
        ".idea",
        ".zed",
        ".fleet",
        ".devcontainer",
        ".devcontainer.json",
        "*.code-workspace",
        ".vim",
        ".vimrc",
        ".gvimrc",
        ".exrc",
        ".nvimrc",
        ".nvim.lua",
        ".config/nvim",
        ".emacs",
        ".emacs.d",
        ".dir-locals.el",
        ".dir-locals-2.el",
    ),
    "continuous integration and hooks": (
        ".github",
        ".gitlab-ci.y*ml",
        ".gitlab",
        ".circleci",
        ".travis.y*ml",
        ".appveyor.y*ml",
        "appveyor.y*ml",
        "azure-pipelines.y*ml",
        "bitbucket-pipelines.y*ml",
        ".buildkite",
        ".drone.y*ml",
        ".woodpecker*",
        "jenkinsfile",
        ".husky",
        ".pre-commit-config.y*ml",
        "lefthook.y*ml",
        ".lefthook.y*ml",
    ),
    "other agents and MCP": (
        ".mcp.json",
        "mcp.json",
        "mcp_config.json",
        "claude_desktop_config.json",
        ".claude",
        ".claude.json",
        ".codex",
        ".cursor",
        ".gemini",
        ".windsurf",
        ".continue",
    ),
    "virtual environments": (
        ".venv/bin",
        ".venv/scripts",
        "venv/bin",
        "venv/scripts",
        ".virtualenv/bin",
        "bin/activate",
        "bin/activate.csh",
        "bin/activate.fish",
        "bin/activate.nu",
        "bin/activate.ps1",
        "bin/activate_this.py",
        "scripts/activate",
        "scripts/activate.bat",
        "scripts/activate.ps1",
        "*.pth",
        "sitecustomize.py",
        "usercustomize.py",
    ),
    "keys and secrets": (
        ".env*",
        "*.env",
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".config/gcloud",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".yarnrc*",
        ".pypirc",
        ".git-credentials",
        ".pgpass",
        ".my.cnf",
        ".vault-token",
        "id_rsa*",
        "id_dsa*",
        "id_ecdsa*",
        "id_ed25519*",
        "*.pem",
        "*.key",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.keystore",
        "*.kdbx",
        "*.ppk",
    ),
}
"""Globs over one name, or plain names that follow each other; each holds for everything below, too."""

DENIED: tuple[str, ...] = ("duckflow.toml",)
"""Duckflow's own configuration in a project; its folders are given to the workspace as denied roots."""


def _one_name(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns if "/" not in pattern))


_ASKING = tuple(pattern for patterns in ASKS.values() for pattern in patterns)
_ASKING_NAME = _one_name(_ASKING)
_ASKING_CHAINS = tuple(tuple(pattern.split("/")) for pattern in _ASKING if "/" in pattern)
_ENVIRONMENT_NAME = _one_name(ASKS["virtual environments"])
_ENVIRONMENT_CHAINS = tuple(tuple(one.split("/")) for one in ASKS["virtual environments"] if "/" in one)
_DENIED_NAME = _one_name(DENIED)
_SECRETS = (
    *ASKS["keys and secrets"],
    *("shadow", "gshadow", "sudoers", "sudoers.d", "master.passwd", "ssl/private", "etc/ssh", "keychains"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".local/share/keyrings"),
    *(".password-store", ".config/gh", ".config/op", ".bash_history", ".zsh_history", ".python_history"),
)
_SECRET_NAME = _one_name(_SECRETS)
_SECRET_CHAINS = tuple(tuple(pattern.split("/")) for pattern in _SECRETS if "/" in pattern)


def protection_of(path: str) -> Protection:
    """How a path relative to the workspace is protected by its names."""
    names = folded(path)
    if any(_DENIED_NAME.match(name) for name in names):
        return "denied"
    if any(_ASKING_NAME.match(name) for name in names):
        return "asks"
    return "asks" if _follow_each_other(names, _ASKING_CHAINS) else "none"


def is_environment_program(path: str) -> bool:
    """Whether it runs when a virtual environment is used: its programs, and what Python loads first."""
    names = folded(path)
    return any(_ENVIRONMENT_NAME.match(name) for name in names) or _follow_each_other(
        names, _ENVIRONMENT_CHAINS
    )


def keeps_secrets(path: str) -> bool:
    """Whether a path on this machine leads where keys, passwords and the like are kept."""
    names = folded(path)
    return any(_SECRET_NAME.match(name) for name in names) or _follow_each_other(names, _SECRET_CHAINS)


def _follow_each_other(names: tuple[str, ...], chains: Iterable[tuple[str, ...]]) -> bool:
    return any(names[start : start + len(chain)] == chain for chain in chains for start in range(len(names)))


def strongest(*protections: Protection) -> Protection:
    """The strongest of several protections."""
    return max(protections, key=lambda protection: STRENGTH[protection])


def within(path: str, folder: str) -> bool:
    """Whether an absolute path is `folder` or below it, compared as carelessly as names are."""
    above = folded(folder)
    return folded(path)[: len(above)] == above


def folded(path: str) -> tuple[str, ...]:
    """The names of a path, ready to be compared."""
    return tuple(fold(name) for name in path.split("/") if name)
