"""Parameters of paths and queries, and the problem document, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from texelgrad.domain import JobState
from texelgrad.exports import FORMATS, PREDICTION_FORMATS
from texelgrad.formats import FORMATS as UPLOADS

Limit = Annotated[int, Field(ge=1, le=200)]


class Query(BaseModel):
    """Root of all parameters: unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")


class JobPath(Query):
    """Names a job."""

    job_id: str = Field(description="As POST /v1/jobs gave it.")


class CheckpointPath(Query):
    """Names a checkpoint of a job."""

    job_id: str = Field(description="As POST /v1/jobs gave it.")
    artifact_id: str = Field(description="As the list of checkpoints gives it.")


class DatasetPath(Query):
    """Names a data set."""

    dataset_id: str = Field(description="As POST /v1/datasets gave it.")


class JobsQuery(Query):
    """Which jobs to list."""

    cursor: str | None = Field(default=None, description="next_cursor of the page before.")
    limit: Limit = 50
    status: Literal[tuple(state.value for state in JobState)] | None = None  # pyright: ignore[reportInvalidTypeForm]
    name: str | None = None
    tag: list[str] = Field(default_factory=list[str], description="name:value; several must all match.")
    dataset: str | None = Field(default=None, description="Only jobs on this data set.")
    parent: str | None = Field(default=None, description="Only retries and resumes of this job.")


class LogsQuery(Query):
    """Which lines to list."""

    cursor: str | None = Field(default=None, description="next_cursor of the page before.")
    limit: Limit = 200
    level: Literal["debug", "info", "warning", "error"] | None = None


class DatasetsQuery(Query):
    """Which data sets to list."""

    cursor: str | None = Field(default=None, description="next_cursor of the page before.")
    limit: Limit = 50
    name: str | None = None


class WorkersQuery(Query):
    """Which workers to list."""

    cursor: str | None = Field(default=None, description="next_cursor of the page before.")
    limit: Limit = 50
    queue: str | None = None
    state: Literal["starting", "idle", "busy", "draining", "broken", "stopped"] | None = None


class ContentQuery(Query):
    """Where a piece belongs."""

    offset: int = Field(default=0, ge=0, lt=2**53, description="`received` of the answer before.")


class PreviewQuery(Query):
    """Which rows to show."""

    offset: int = Field(default=0, ge=0, lt=2**53)
    limit: int = Field(default=10, ge=1, le=100)


class UploadQuery(Query):
    """What a raw upload is; a multipart one may say it in its fields as well."""

    name: str | None = Field(default=None, description="1 to 200 printable characters.")
    format: Literal[UPLOADS] | None = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=None, description="Told from the file where missing."
    )
    target: str | None = Field(default=None, description="Column with the targets, of a CSV or Parquet file.")
    weight: str | None = Field(
        default=None, description="Column with what each row counts for, of a CSV or Parquet file."
    )


class MetricsQuery(Query):
    """Which curves, and how finely."""

    keys: str | None = Field(
        default=None, description="Comma-separated, such as loss,val_loss; all where missing."
    )
    max_points: int = Field(default=2000, ge=8, le=1_000_000, description="For each curve; spikes are kept.")


class WeightsQuery(Query):
    """Which file."""

    format: Literal[FORMATS] = "safetensors"  # pyright: ignore[reportInvalidTypeForm]


class PredictionsQuery(Query):
    """Which file."""

    format: Literal[PREDICTION_FORMATS] = "safetensors"  # pyright: ignore[reportInvalidTypeForm]


class WebhookPath(Query):
    """Names a webhook."""

    webhook_id: str = Field(description="As POST /v1/webhooks gave it.")


class DeliveriesQuery(Query):
    """Which messages to list."""

    cursor: str | None = Field(default=None, description="next_cursor of the page before.")
    limit: Limit = 50


class EventsQuery(Query):
    """Where to go on."""

    after: str | None = Field(default=None, description="An event id, as Last-Event-ID has it.")


class FaultModel(BaseModel):
    """One thing wrong with a request."""

    field: str
    value: Any
    message: str
    legal: str | None


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FaultModel]
    more: int | None = Field(default=None, description="Faults that were found besides those in errors.")
