"""Files that users write. They are parsed strictly, so that every mistake is reported in one sentence."""
