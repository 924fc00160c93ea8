"""The weights of embedded models: which there are, where they come from, and the files on this machine."""

from duckflow.llm.weights.catalogue import Weights, WeightsPart, known
from duckflow.llm.weights.installation import ModelStatus, find, install, list_models, remove
from duckflow.llm.weights.place import Progress, Report, Source

__all__ = [
    "ModelStatus",
    "Progress",
    "Report",
    "Source",
    "Weights",
    "WeightsPart",
    "find",
    "install",
    "known",
    "list_models",
    "remove",
]
