"""Files written by users: parsed strictly, so that every mistake is reported in one sentence."""
