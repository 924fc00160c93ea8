"""Environment of a command: the user's, without keys and without variables that lead out of the sandbox."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.redaction.patterns import lines_with_secrets
from duckflow.safety.redaction.values import is_secret_name, looks_random

_MORE_SECRETS = lazy_regex(r"(?:PASS|PWD|COOKIE|JWT)S?$")
_WORKING_FOLDERS = ("PWD", "OLDPWD")
_PASSWORD_IN_ADDRESS = lazy_regex(r"://[^/\s@]*:[^/\s@]*@")
_ONE_RUN = lazy_regex(r"[A-Za-z0-9+=_-]{20,}")
_HASH = lazy_regex(r"[0-9a-f]+|[0-9A-F]+")

_SERVICES = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "GPG_AGENT_INFO", "GPG_TTY"),
    *("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DOCKER_HOST"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SESSION_MANAGER", "TMUX", "STY"),
)
"""Variables that point to running programs of the user, which commands can't reach."""

_TEMPORARY = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")
_OF_THE_HOME = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables passed on only if they name folders below the home."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY")
"""Proxy settings. Without a network they only harm: programs would use the proxy even for loopback."""

GATEWAY = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
"""Variables by which programs find the gateway."""

_BESIDE_GATEWAY = {
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}

SET = {
    # Otherwise `git status` would write to the index, a change that would have to be judged.
    "GIT_OPTIONAL_LOCKS": "0",
    # Otherwise `git rebase --continue` or `git commit --amend` would start an invisible editor.
    "GIT_EDITOR": "true",
    # Otherwise Python would buffer its output and lose it when a limit stops the command.
    "PYTHONUNBUFFERED": "1",
}
"""Variables added to every command's environment. Programs detect on their own that there is no terminal."""

_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(
    user: Mapping[str, str], temporary: str, *, network: bool, own_home: bool, gateway: bool = False
) -> dict[str, str]:
    """Return a command's environment, based on the user's. `own_home`: its home folder is writable.

    `gateway`: it reaches some hosts; its own process adds the variables that name the gateway.
    """
    home = user.get("HOME", "")
    kept = {name: value for name, value in user.items() if _is_passed_on(name, value, home, network=network)}
    path = [part for part in kept.get("PATH", "").split(":") if part.startswith("/")]
    kept["PATH"] = ":".join(path) or _FALLBACK_PATH
    caches = {"XDG_CACHE_HOME": f"{temporary}/.cache", "npm_config_cache": f"{temporary}/.cache/npm"}
    more = _BESIDE_GATEWAY if gateway else {}
    return {**kept, **SET, **more, "TMPDIR": temporary, **({} if own_home else caches)}


def git_over_http(hosts: Iterable[str]) -> dict[str, str]:
    """Return variables that let git leave encryption to the gateway, which adds the token for these hosts."""
    names = list(hosts)
    pairs = {f"GIT_CONFIG_KEY_{n}": f"url.http://{host}/.insteadOf" for n, host in enumerate(names)}
    pairs |= {f"GIT_CONFIG_VALUE_{n}": f"https://{host}/" for n, host in enumerate(names)}
    return {**pairs, "GIT_CONFIG_COUNT": str(len(names))} if names else {}


def _is_passed_on(name: str, value: str, home: str, *, network: bool) -> bool:
    if name in _SERVICES or name in _TEMPORARY or name.startswith("GIT_CONFIG"):
        return False  # git's settings are in the home folder that commands see
    if name in _OF_THE_HOME and not value.startswith(f"{home}/"):
        return False
    if name.upper() in _PROXIES and not network:
        return False
    return not _is_hidden(name, value)


@lru_cache(2_000)
def _is_hidden(name: str, value: str) -> bool:
    """Return whether a variable holds a key, by its name or value, or is not valid text."""
    text = f"{name}={value}"
    if text.encode("utf-8", "replace").decode() != text or is_secret_name(name):
        return True
    if name not in _WORKING_FOLDERS and _MORE_SECRETS.search(name.upper()):
        return True
    if _ONE_RUN.fullmatch(value) and not _HASH.fullmatch(value) and looks_random(value):
        return True
    return _PASSWORD_IN_ADDRESS.search(value) is not None or bool(lines_with_secrets(text))
