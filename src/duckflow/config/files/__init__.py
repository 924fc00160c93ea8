"""The files users write: read strictly, so that whatever is wrong becomes one sentence."""
