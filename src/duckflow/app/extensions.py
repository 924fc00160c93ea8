"""Extensions of the user and of a trusted project: hooks, plugins, checks."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from duckflow.config.files.hooks import HOOKS_FILE, parse_hooks, read_hooks
from duckflow.config.places import config_dir
from duckflow.config.settings import Settings
from duckflow.config.toml_file import parse, read_text
from duckflow.config.trust import PROJECT_HOOKS
from duckflow.domain.errors import UsageError
from duckflow.domain.extensions import HookList
from duckflow.evaluation.diagnostics import Checker, with_rows
from duckflow.plugins import Plugins, load_plugins
from duckflow.prompts.templates import check_own_templates

CHECKERS_FILE = "checkers.toml"


class LoadedExtensions(NamedTuple):
    """Extensions of the user and of a trusted project."""

    hooks: tuple[HookList, ...]
    plugins: Plugins
    checkers: tuple[Checker, ...]


def load_extensions(settings: Settings, folder: Path, project: Mapping[str, str]) -> LoadedExtensions:
    """Load all extensions, before anything is opened that would have to be closed."""
    check_own_templates()
    wanted = settings.plugins
    root = Path(os.path.realpath(folder))
    plugins = load_plugins(root, wanted.disabled) if wanted.enabled else Plugins()
    file = config_dir() / CHECKERS_FILE
    own = read_text(file)
    try:
        checkers = with_rows(plugins.together.checks, parse(own, file) if own else {})
    except (TypeError, ValueError) as exc:
        raise UsageError("config.bad_table", path=file, reason=str(exc).replace("\n", " ")) from exc
    return LoadedExtensions(_read_hooks(settings, project), plugins, checkers)


def _read_hooks(settings: Settings, project: Mapping[str, str]) -> tuple[HookList, ...]:
    if not settings.hooks.enabled:
        return ()
    lists = [read_hooks(config_dir() / HOOKS_FILE)]
    # Never from the current folder: it belongs to the project, which needs trust.
    lists += [read_hooks(config_dir() / path, named=True) for path in settings.hooks.files]
    if PROJECT_HOOKS in project:
        lists.append(parse_hooks(project[PROJECT_HOOKS], PROJECT_HOOKS))
    return tuple(lists)
