"""Programs that tests fork behave like programs that are started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from fakes import warm

PROBE = """import json, os, signal, sys, tempfile, threading, time
said = sys.stdin.read()
print(json.dumps([
    said, sys.argv, os.getcwd(), dict(os.environ), sys.stdout.isatty(), sys.stdin.encoding, sys.stdout.errors,
    sys.stderr.errors, sys.stdout.line_buffering, sys.stderr.line_buffering, tempfile.gettempdir(),
    time.tzname, os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid(),
    sorted(os.listdir("/dev/fd"))[:4],
    threading.active_count(), signal.pthread_sigmask(signal.SIG_BLOCK, []) == set(),
    [str(signal.getsignal(one)).partition(" at ")[0] for one in signal.Signals],
]))
print("é", file=sys.stderr)
import atexit; atexit.register(print, "bye")
sys.exit(int(sys.argv[1]))
"""


def test_a_forked_program_is_as_a_started_one(tmp_path: Path):
    """Streams, folder, environment, time zone, session, signals, open files, exit code, what runs last."""
    (tmp_path / "probe.py").write_text(PROBE)
    command = [sys.executable, str(tmp_path / "probe.py"), "7", "häus"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "TZ": "Asia/Tokyo", "NEW": "1"}
    for session in (False, True):
        options = {"env": env, "cwd": tmp_path, "capture_output": True, "start_new_session": session}
        forked = warm.run(command, input=b"in\n", **options)
        started = subprocess.run(command, input=b"in\n", check=False, **options)
        assert (forked.returncode, forked.stderr) == (7, "é\n".encode())
        assert (started.returncode, started.stderr) == (7, "é\n".encode())
        assert json.loads(forked.stdout.split(b"\n")[0]) == json.loads(started.stdout.split(b"\n")[0])
        assert forked.stdout.endswith(b"bye\n")


def test_its_end_is_told_as_that_of_a_started_one(tmp_path: Path):
    """Crashes, signals, a program that can be waited for and killed, many at once."""
    waits = tmp_path / "waits.py"
    waits.write_text("print('here', flush=True); import time; time.sleep(600)")
    with warm.start([sys.executable, str(waits)], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"here\n"
        assert program.poll() is None
        os.kill(program.pid, 0)
        program.kill()
        assert program.wait(60) == -signal.SIGKILL
    (tmp_path / "fails.py").write_text("1 / 0")
    command = [sys.executable, str(tmp_path / "fails.py")]
    many = [warm.start(command, stderr=subprocess.PIPE) for _ in range(8)]
    for one in many:
        _, said = one.communicate()
        assert (one.returncode, b"ZeroDivisionError" in said) == (1, True)
