"""SAFETY 9: the sandbox is found by running it, and never reported as better than it is."""

import asyncio

import pytest

from duckflow.config.settings import ShellSettings
from duckflow.i18n.catalogue import set_language, text
from duckflow.safety.sandbox import probe
from duckflow.safety.sandbox.child import landlock, seccomp
from duckflow.safety.sandbox.probe import Probe
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.levels import Sandbox


@pytest.fixture
async def find(folder):
    """Return the sandbox that a new probe finds with a setting."""
    shells = []

    async def found(choice="auto"):
        shells.append(Shell(folder, ShellSettings(sandbox=choice), probe=Probe()))
        sandbox = await shells[-1].sandbox()
        for language in ("ja", "en"):
            set_language(language)
            for key in (sandbox.reason, sandbox.advice):
                assert key is None or text(key, **sandbox.values) != key
        return sandbox

    yield found
    for shell in shells:
        await shell.aclose()


def use_bubblewrap(monkeypatch, path, script):
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(probe, "_find_program", lambda: str(path))


def refuse_namespaces(monkeypatch):
    async def refused(launcher):
        return Sandbox(level="none", reason="sandbox.namespaces_fail", values={"said": "no"})

    monkeypatch.setattr(probe, "_namespaces", refused)


async def test_plain_namespaces_are_used_before_bubblewrap(find, monkeypatch):
    monkeypatch.setattr(probe, "_find_program", lambda: None)
    found = await find()
    if (await find("namespaces")).level != "namespaces":
        pytest.skip("this system refuses namespaces")
    assert (found.reason, found.advice) == ("sandbox.namespaces", None)


async def test_without_namespaces_bubblewrap_is_used(find, monkeypatch):
    refuse_namespaces(monkeypatch)
    if (await find("bubblewrap")).level != "bubblewrap":
        pytest.skip("there is no bubblewrap here, or this system refuses it")
    assert (await find()).level == "bubblewrap"


async def test_namespaces_that_were_chosen_and_are_refused_are_said(find, monkeypatch):
    def refused(*_arguments, **_options):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(probe, "base_mounts", refused)
    found = await find("namespaces")
    assert (found.level, found.reason) == ("none", "sandbox.namespaces_fail")


async def test_without_bubblewrap_and_namespaces_landlock_is_used_and_says_how_to_get_more(find, monkeypatch):
    if landlock.version() < landlock.OLDEST:
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setattr(probe, "_find_program", lambda: None)
    refuse_namespaces(monkeypatch)
    found = await find()
    assert (found.level, found.reason, found.advice) == (
        "landlock",
        "sandbox.no_bubblewrap",
        "sandbox.advice_install",
    )


@pytest.mark.parametrize(
    "script", ["echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "exit 0"]
)
async def test_a_bubblewrap_that_does_not_work_is_not_used(find, monkeypatch, tmp_path, script):
    use_bubblewrap(monkeypatch, tmp_path / "bwrap", script)
    found = await find("bubblewrap")
    assert (found.level, found.reason) == ("none", "sandbox.bubblewrap_fails_alone")


async def test_a_bubblewrap_that_confines_nothing_is_not_used(find, monkeypatch, tmp_path):
    told = """echo '{"child-pid": '$$'}' >&10; read -n 1 word <&11"""
    program = 'while [ "$1" != "--" ]; do shift; done; shift; exec "$@"'
    use_bubblewrap(monkeypatch, tmp_path / "bwrap", f'[ "$1" = --help ] && exit\n{told}\n{program}')
    found = await find("bubblewrap")
    assert found.level == "none"
    assert "outside" in found.values["said"]


async def test_with_neither_there_is_none(find, monkeypatch):
    monkeypatch.setattr(probe, "_find_program", lambda: None)
    monkeypatch.setattr(landlock, "version", lambda: 2)
    refuse_namespaces(monkeypatch)
    found = await find()
    assert (found.level, found.reason) == ("none", "sandbox.no_bubblewrap_nor_landlock")


async def test_where_bubblewrap_fails_and_landlock_is_missing_there_is_none(find, monkeypatch, tmp_path):
    use_bubblewrap(monkeypatch, tmp_path / "bwrap", "exit 1")
    monkeypatch.setattr(landlock, "version", lambda: 0)
    refuse_namespaces(monkeypatch)
    found = await find()
    assert (found.level, found.reason) == ("none", "sandbox.bubblewrap_fails_no_landlock")


async def test_landlock_that_was_chosen_and_is_missing_is_said(find, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert (await find("landlock")).reason == "sandbox.landlock_alone"


async def test_it_can_be_switched_off(find):
    assert (await find("none")).reason == "sandbox.switched_off"


async def test_G7_the_user_can_declare_the_machine_to_be_the_sandbox(folder, open_shell):
    """No sandbox is tried, and a command works in the folder itself, without keys."""
    shell = await open_shell(folder, "external", env={"PATH": "/usr/bin:/bin", "MY_TOKEN": "x"})
    result = await shell.run("echo mine > made; echo ${MY_TOKEN:-no key}")
    assert (result.exit_code, result.output, result.effects) == (0, "no key\n", None)
    assert (folder / "made").read_text() == "mine\n"
    assert (await shell.sandbox()).reason == "sandbox.external"


async def test_elsewhere_than_on_linux_there_is_none(find, monkeypatch):
    monkeypatch.setattr(probe, "LINUX", False)
    assert (await find()).reason == "sandbox.not_linux"


async def test_on_a_machine_the_filter_does_not_know_there_is_none(find, monkeypatch):
    monkeypatch.setattr(seccomp, "supported", lambda: False)
    assert (await find()).reason == "sandbox.machine"


async def test_it_is_asked_once(folder, monkeypatch):
    asked = Probe()
    shells = [Shell(folder, ShellSettings(sandbox="auto"), probe=asked) for _ in range(2)]
    first = await shells[0].sandbox()
    monkeypatch.setattr(probe, "_find", None)
    assert await shells[1].sandbox() is first
    for shell in shells:
        await shell.aclose()


async def test_who_comes_while_it_is_being_tried_waits_for_the_same_answer(folder, monkeypatch):
    tried = []

    async def trying(launcher):
        tried.append(launcher)
        await asyncio.sleep(0)
        return Sandbox(level="namespaces", reason="sandbox.namespaces")

    monkeypatch.setattr(probe, "_namespaces", trying)
    shell = Shell(folder, ShellSettings(sandbox="namespaces"), probe=Probe())
    found = await asyncio.gather(*(shell.sandbox() for _ in range(5)))
    assert (len(tried), {one.level for one in found}) == (1, {"namespaces"})
    await shell.aclose()
