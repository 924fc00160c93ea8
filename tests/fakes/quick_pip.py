"""Stands in for `pip download` where pip itself is not the question: it takes most of a second to start.

python -I -S quick_pip.py download … --dest FOLDER --requirement FILE
"""

import hashlib
import os
import sys

dest, wanted = (sys.argv[sys.argv.index(option) + 1] for option in ("--dest", "--requirement"))
with open(wanted, encoding="utf-8") as file:  # noqa: PTH123 - without pathlib it starts quicker
    pinned, digest = file.read().split()
name, version = pinned.split("==")
wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
try:
    with open(f"{os.environ['PIP_FIND_LINKS']}/{wheel}", "rb") as file:  # noqa: PTH123
        data = file.read()
except FileNotFoundError:
    sys.exit(f"ERROR: No matching distribution found for {pinned}")
if digest != f"--hash=sha256:{hashlib.sha256(data).hexdigest()}":
    sys.exit("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.")
os.mkdir(dest)  # noqa: PTH102
with open(f"{dest}/{wheel}", "wb") as file:  # noqa: PTH123
    file.write(data)
