"""First schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "dataset",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dataset"),
        sa.UniqueConstraint("owner_id", "sha256", name="uq_dataset_owner_id_sha256"),
    )
    op.create_index("ix_dataset_owner_id_id", "dataset", ["owner_id", "id"])

    op.create_table(
        "lease",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_lease"),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("engine_hash", sa.Text(), nullable=True),
        sa.Column("renderer", sa.Text(), nullable=True),
        sa.Column("gpu", sa.Text(), nullable=True),
        sa.Column("software", sa.Boolean(), nullable=True),
        sa.Column("attempt_id", sa.Text(), nullable=True),
        sa.Column("proof", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("proved_at", sa.BigInteger(), nullable=True),
        sa.Column("fault", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_worker"),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.String(length=32), nullable=True),
        sa.Column("dataset_id", sa.String(length=32), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec_version", sa.BigInteger(), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("needs_hardware", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("failure", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("max_attempts", sa.BigInteger(), nullable=False),
        sa.Column("lost_attempts", sa.BigInteger(), nullable=False),
        sa.Column("environment_faults", sa.BigInteger(), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        sa.Column("last_metrics", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("eligible_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("cancel_requested_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name="fk_job_dataset_id_dataset"),
        sa.ForeignKeyConstraint(["parent_id"], ["job.id"], name="fk_job_parent_id_job"),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
    )
    op.create_index("ix_job_claim", "job", ["queue", "state", "eligible_at"])
    op.create_index("ix_job_dataset_id", "job", ["dataset_id"])
    op.create_index("ix_job_owner_id_id", "job", ["owner_id", "id"])

    op.create_table(
        "attempt",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("parent_id", sa.String(length=32), nullable=True),
        sa.Column("resumed_from_step", sa.BigInteger(), nullable=True),
        sa.Column("not_bit_exact", sa.Text(), nullable=True),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("training_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("backend", sa.Text(), nullable=True),
        sa.Column("renderer", sa.Text(), nullable=True),
        sa.Column("software", sa.Boolean(), nullable=True),
        sa.Column("plan_key", sa.Text(), nullable=True),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("diagnostics", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_attempt_job_id_job", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["parent_id"], ["attempt.id"], name="fk_attempt_parent_id_attempt"),
        sa.PrimaryKeyConstraint("id", name="pk_attempt"),
        sa.UniqueConstraint("job_id", "number", name="uq_attempt_job_id_number"),
    )
    op.create_index("ix_attempt_lease", "attempt", ["state", "lease_until"])

    op.create_table(
        "event",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_event_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name="pk_event"),
    )
    op.create_table(
        "idempotency_key",
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_sha256", sa.Text(), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name="fk_idempotency_key_job_id_job", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("owner_id", "key", name="pk_idempotency_key"),
    )
    op.create_index("ix_idempotency_key_job_id", "idempotency_key", ["job_id"])

    op.create_table(
        "job_tag",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_tag_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "name", name="pk_job_tag"),
    )
    op.create_index("ix_job_tag_name_value", "job_tag", ["name", "value"])

    op.create_table(
        "artifact",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.String(length=32), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("chunk_size", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_artifact_attempt_id_attempt", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_artifact"),
    )
    op.create_index("ix_artifact_attempt_id_kind_state", "artifact", ["attempt_id", "kind", "state"])

    op.create_table(
        "log_line",
        sa.Column("attempt_id", sa.String(length=32), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_log_line_attempt_id_attempt", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "seq", name="pk_log_line"),
    )
    op.create_table(
        "metric_chunk",
        sa.Column("attempt_id", sa.String(length=32), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("keys", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("steps", sa.LargeBinary(), nullable=False),
        sa.Column("values", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempt.id"], name="fk_metric_chunk_attempt_id_attempt", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "seq", name="pk_metric_chunk"),
    )
    op.create_table(
        "artifact_chunk",
        sa.Column("artifact_id", sa.String(length=32), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact_id"],
            ["artifact.id"],
            name="fk_artifact_chunk_artifact_id_artifact",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("artifact_id", "seq", name="pk_artifact_chunk"),
    )
    op.create_table(
        "dataset_array",
        sa.Column("dataset_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("dtype", sa.Text(), nullable=False),
        sa.Column("shape", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("stats", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("artifact_id", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifact.id"], name="fk_dataset_array_artifact_id_artifact"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name="fk_dataset_array_dataset_id_dataset", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("dataset_id", "name", name="pk_dataset_array"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Chunks are hardly compressible, and a range of one is cut without reading the rest.
        op.execute("ALTER TABLE artifact_chunk ALTER COLUMN data SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Undo."""
    for table in (
        "dataset_array",
        "artifact_chunk",
        "metric_chunk",
        "log_line",
        "artifact",
        "job_tag",
        "idempotency_key",
        "event",
        "attempt",
        "job",
        "worker",
        "lease",
        "dataset",
    ):
        op.drop_table(table)
