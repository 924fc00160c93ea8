"""Every cell of mode x effect x protection (SPEC G3, SAFETY 1)."""

from itertools import product

import pytest

from duckflow.safety.policy import decide

EFFECTS = ("read", "write", "delete", "execute", "consent")
PLAIN = {
    "plan": ("allow", "deny", "deny", "deny", "ask"),
    "ask": ("allow", "ask", "ask", "ask", "ask"),
    "edits": ("allow", "allow", "ask", "ask", "ask"),
    "auto": ("allow", "allow", "ask", "ask", "ask"),
}
CELLS = [
    (mode, effect, protection)
    for mode, effect, protection in product(PLAIN, EFFECTS, ("none", "asks", "denied"))
]


@pytest.mark.parametrize(("mode", "effect", "protection"), CELLS)
def test_each_cell_of_the_modes_G3(mode, effect, protection):
    expected = {
        "none": PLAIN[mode][EFFECTS.index(effect)],
        "asks": "deny" if mode == "plan" else "ask",
        "denied": "deny",
    }[protection]
    ruling = decide(mode, effect, protection)
    assert ruling.verdict == expected
    assert ruling.reason
