"""G7: the environment of a command is the user's own, without keys."""

from duckflow.safety.sandbox.view.environment import command_environment


async def test_G7_no_key_of_the_user_is_in_the_environment(folder, any_level, open_shell):
    env = {
        "PATH": "/usr/bin:/bin:relative",
        "OPENAI_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "LC_TIME": "C",
    }
    shell = await open_shell(folder, any_level, env={**env, "HOME": str(folder)})
    names = set((await shell.run("env | cut -d= -f1")).output.split())
    assert {"PATH", "HOME", "LC_TIME", "TMPDIR"} <= names
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"} & names
    assert (await shell.run("echo $PATH")).output == "/usr/bin:/bin\n"


KEPT = {
    "HOME": "/home/a",
    "PATH": "/usr/bin",
    "TERM": "xterm-256color",
    "DJANGO_SETTINGS_MODULE": "site.settings",
    "PWD": "/work",
    "EDITOR": "vi",
    "GPG_KEY": "A035C8C19219BA821ECEA86B64E628F8D684696D",
    "GIT_COMMIT": "9ed46de0c1b2a39485766554433221100ffeeddc",
    "KEYBOARD_LAYOUT": "de",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem",
    "NIX_PATH": "nixpkgs=/nix/store/4q7m2v1s9x8b3k5d6f0z-nixpkgs",
    "XDG_CACHE_HOME": "/home/a/.caches",
    "名": "あ",
}
NOT_KEPT = {
    "MY_TOKEN": "short",
    "SSHPASS": "x",
    "DB": "postgres://me:pw@db/x",
    "ANYTHING": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "WHATEVER": "Zq8vT3nLw9XkR2mYb7HcJ5dP",
    "BYTES": "\udcff",
    "SSH_AUTH_SOCK": "/run/agent",
    "DISPLAY": ":0",
    "HTTP_PROXY": "http://proxy",
    "GIT_CONFIG_GLOBAL": "/x",
    "XDG_DATA_HOME": "/mnt/data",
    "TEMP": "/mnt/tmp",
}


def test_G7_the_environment_is_the_users_own_without_keys_and_with_no_wish_for_plain_output():
    """Programs find the same colour and editor settings as outside."""
    seen = command_environment({**KEPT, **NOT_KEPT}, "/tmp", network=False, own_home=True)
    assert {name: value for name, value in seen.items() if name in KEPT} == KEPT
    assert set(seen) - set(KEPT) == {"TMPDIR", "GIT_OPTIONAL_LOCKS", "GIT_EDITOR", "PYTHONUNBUFFERED"}
    assert "HTTP_PROXY" in command_environment(NOT_KEPT, "/tmp", network=True, own_home=True)


def test_G7_without_a_home_of_its_own_a_command_has_other_places_for_caches():
    alone = command_environment(KEPT, "/t", network=False, own_home=True)
    seen = command_environment(KEPT, "/t", network=False, own_home=False)
    changed = {name: value for name, value in seen.items() if alone.get(name) != value}
    assert changed == {"XDG_CACHE_HOME": "/t/.cache", "npm_config_cache": "/t/.cache/npm"}
