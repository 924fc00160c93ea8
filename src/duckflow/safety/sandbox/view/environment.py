"""The environment of a command: what programs need to be found and to speak plainly, and nothing secret."""

from collections.abc import Mapping

KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TZDIR"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYTHONPATH", "NVM_DIR", "NODE_PATH", "VOLTA_HOME"),
    *("JAVA_HOME", "GOROOT", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GEM_HOME"),
    *("DOTNET_ROOT", "ANDROID_HOME", "CC", "CXX", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MAKEFLAGS"),
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_PATH", "NIX_SSL_CERT_FILE", "LOCALE_ARCHIVE"),
    "GIT_CONFIG_NOSYSTEM",  # without it, git would obey settings that the user turned off
)
"""Variables of the user that a command sees; all others, keys among them, it does not."""

KEPT_BEGINNINGS = ("LC_",)

WITH_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # .git can't be written, so git must not try where it need not
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",  # output is shown as it comes
}
"""Nobody is there to answer, and nothing is a terminal."""

_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(user: Mapping[str, str], temporary: str, *, network: bool) -> dict[str, str]:
    """What a command sees, made from what the user's environment holds."""
    kept = {name: value for name, value in user.items() if name in KEPT or name.startswith(KEPT_BEGINNINGS)}
    if network:
        kept |= _proxies(user)
    path = [part for part in kept.get("PATH", "").split(":") if part.startswith("/")]
    kept["PATH"] = ":".join(path) or _FALLBACK_PATH
    places = {
        "TMPDIR": temporary,
        "XDG_CACHE_HOME": f"{temporary}/.cache",
        "npm_config_cache": f"{temporary}/.cache/npm",
    }
    return {**kept, **SET, **places}


def _proxies(user: Mapping[str, str]) -> dict[str, str]:
    """The way out, except where a password is part of it."""
    names = (*WITH_NETWORK, *(name.lower() for name in WITH_NETWORK))
    return {name: user[name] for name in names if name in user and "@" not in user[name]}
