"""J11: imports that a small model forgets are added; the rest stays as it is."""

from duckflow.dialects.compact_prompt import content_prompt
from duckflow.dialects.drafts import DraftCheck, DraftLimits, draft
from duckflow.dialects.missing_imports import with_imports
from duckflow.domain.model import ModelRequest
from fakes.model import FakeModel
from fakes.rows import every_row

ROLL = "def roll():\n    return random.randint(1, 6)\n"


@every_row(
    "content, expected",
    [
        (ROLL, f"import random\n\n\n{ROLL}"),
        (f'"""Dice."""\n\n\n{ROLL}', f'"""Dice."""\n\nimport random\n\n\n{ROLL}'),
        ("print(math.pi)\n", "import math\n\nprint(math.pi)\n"),
        (
            "#!/usr/bin/env python3\nprint(math.pi)\n",
            "#!/usr/bin/env python3\n\nimport math\n\nprint(math.pi)\n",
        ),
        (
            "from __future__ import annotations\nimport os\nprint(sys.argv, os.sep)\n",
            "from __future__ import annotations\nimport sys\nimport os\nprint(sys.argv, os.sep)\n",
        ),
        (
            "from dice import roll\npytest.raises(roll)\n",
            "import pytest\nfrom dice import roll\npytest.raises(roll)\n",
        ),
    ],
)
def test_J11_a_known_module_that_is_used_without_an_import_gets_one(content, expected):
    assert with_imports("dice.py", content) == expected


def test_J11_defined_names_other_names_and_other_files_stay_as_they_are():
    alone = [
        f"import random\n{ROLL}",
        f"import numpy as random\n{ROLL}",
        f"from tools import *\n{ROLL}",
        "def f(time):\n    return time.x\n",
        "for token in tokens:\n    token.show()\n",
        "try:\n    f()\nexcept OSError as signal:\n    signal.errno\n",
        "class types:\n    A = 1\nprint(types.A)\n",
        "requests.get(url)\n",
        "def broken(:\n    random.random()\n",
        "",
    ]
    assert [with_imports("a.py", content) for content in alone] == alone
    assert with_imports("a.rb", ROLL) == ROLL


async def test_J11_a_draft_gets_the_import_before_it_is_checked():
    checked: list[str] = []

    async def check(content: str) -> DraftCheck:
        checked.append(content)
        return DraftCheck()

    prompt = content_prompt("", "dice.py", exists=False, unseen=None)
    content, _ = await draft(
        FakeModel(ROLL),
        ModelRequest(output="Content", messages=()),
        prompt,
        check,
        DraftLimits(),
        failed_attempts=0,
        path="dice.py",
        current=None,
        must_change=True,
    )
    assert checked == [content] == [f"import random\n\n\n{ROLL}"]
