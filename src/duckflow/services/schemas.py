"""The shape of an answer, for models that can be bound to one."""

from pydantic import BaseModel

from duckflow.domain.model import JsonSchema


def schema_of(answer: type[BaseModel]) -> JsonSchema:
    """The schema of an answer; every field is wanted of a model that can be bound."""
    schema = answer.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        part["required"] = list(part.get("properties", {}))
    return schema
