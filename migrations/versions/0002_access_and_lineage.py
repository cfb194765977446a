"""Keys, sessions, webhooks, uploads; jobs that continue others, and what their data was normalised with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("resume_artifact_id", sa.String(length=32), nullable=True))
        job.add_column(sa.Column("normalization", sa.JSON(none_as_null=True), nullable=True))
        job.create_foreign_key(
            "fk_job_resume_artifact_id_artifact", "artifact", ["resume_artifact_id"], ["id"]
        )

    op.create_index("ix_job_owner_id_state", "job", ["owner_id", "state"])

    op.create_table(
        "api_key",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("max_jobs", sa.BigInteger(), nullable=True),
        sa.Column("max_bytes", sa.BigInteger(), nullable=True),
        sa.Column("rate_per_minute", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("sha256", name="uq_api_key_sha256"),
    )
    op.create_index("ix_api_key_owner_id", "api_key", ["owner_id"])
    op.create_table(
        "web_session",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_key.id"], name="fk_web_session_key_id_api_key", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sha256", name="pk_web_session"),
    )
    op.create_index("ix_web_session_key_id", "web_session", ["key_id"])

    op.create_table(
        "webhook",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook"),
    )
    op.create_index("ix_webhook_owner_id", "webhook", ["owner_id"])
    op.create_table(
        "webhook_secret",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_secret"),
    )
    op.create_index("ix_webhook_secret_owner_id", "webhook_secret", ["owner_id"])
    op.create_table(
        "webhook_delivery",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("webhook_id", sa.String(length=32), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name="fk_webhook_delivery_webhook_id_webhook", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_delivery"),
    )
    op.create_index("ix_webhook_delivery_due", "webhook_delivery", ["state", "next_at"])
    op.create_index("ix_webhook_delivery_webhook_id", "webhook_delivery", ["webhook_id"])

    op.create_table(
        "upload",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("artifact_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["artifact_id"], ["artifact.id"], name="fk_upload_artifact_id_artifact"),
        sa.PrimaryKeyConstraint("id", name="pk_upload"),
    )
    op.create_index("ix_upload_owner_id", "upload", ["owner_id"])


def downgrade() -> None:
    """Undo."""
    for table in ("upload", "webhook_delivery", "webhook_secret", "webhook", "web_session", "api_key"):
        op.drop_table(table)
    op.drop_index("ix_job_owner_id_state", "job")
    with op.batch_alter_table("job") as job:
        job.drop_constraint("fk_job_resume_artifact_id_artifact", type_="foreignkey")
        job.drop_column("normalization")
        job.drop_column("resume_artifact_id")
