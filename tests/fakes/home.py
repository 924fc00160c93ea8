"""A home of its own for a test, so that nothing of the developer's set-up reaches it."""

import os
import time
from pathlib import Path

import pytest

_PROVIDERS = (
    "OPENAI",
    "ANTHROPIC",
    "GOOGLE",
    "GEMINI",
    "GROQ",
    "OPENROUTER",
    "MISTRAL",
    "OLLAMA",
    "AZURE",
    "AWS",
)
NO_SYSTEM_GIT = {"GIT_CONFIG_NOSYSTEM": "1"}
"""For programs with an environment of their own: git does not read /etc/gitconfig."""

_PERSONAL = ("LANGUAGE", "EMAIL", "EDITOR", "VISUAL", "NO_COLOR", "FORCE_COLOR")
_FOLDERS = {"CONFIG": ".config", "STATE": ".local/state", "CACHE": ".cache", "DATA": ".local/share"}


def forget_machine() -> None:
    """Drop this machine's language, time zone, git settings and personal choices."""
    for name in list(os.environ):
        if name.startswith(("LC_", "GIT_")) or name in _PERSONAL:
            del os.environ[name]
    os.environ |= {"LANG": "C.UTF-8", "TZ": "UTC", **NO_SYSTEM_GIT}
    time.tzset()


def move_into(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this empty folder the home, with no keys and no settings of anyone."""
    for name in list(os.environ):
        ours = name.startswith("DUCKFLOW_") and name != "DUCKFLOW_TEST_CACHE"
        if ours or name.startswith(_PROVIDERS) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    # Projects that tests make have tests too; what our own need of plugins is most of pytest's start.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost,::1")
    for part, folder in _FOLDERS.items():
        monkeypatch.setenv(f"XDG_{part}_HOME", str(home / folder))
