"""Scalars and base models that the wire's models are made of."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_integral), Field(strict=True)]
"""A JSON number without a fraction; 3.0 counts as 3, booleans and strings do not count."""

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite JSON number; booleans and strings do not count."""

Flag = Annotated[bool, Field(strict=True)]
"""A JSON boolean, and nothing that looks like one."""

Seed = Annotated[Integer, Field(ge=0)]
"""Chooses a problem: ``seed mod size`` of the split."""


class Request(BaseModel):
    """Something a client sends: immutable, and keys that we do not know are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True, use_attribute_docstrings=True)


class NullsAreDefaults(BaseModel):
    """A model in which a JSON null says the same as leaving the key out."""

    @model_validator(mode="before")
    @classmethod
    def _leave_nulls_out(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data


class Answer(BaseModel):
    """Something we send; its fields are all there is."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)


class OpenAnswer(BaseModel):
    """Something we send that may carry further keys: readers keep what they do not know."""

    model_config = ConfigDict(
        extra="allow", populate_by_name=True, serialize_by_alias=True, use_attribute_docstrings=True
    )
