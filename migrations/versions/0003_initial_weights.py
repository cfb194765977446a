"""Jobs that begin with weights which are there already: those of an earlier job, or uploaded ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("weights_artifact_id", sa.String(length=32), nullable=True))
        job.create_foreign_key(
            "fk_job_weights_artifact_id_artifact", "artifact", ["weights_artifact_id"], ["id"]
        )
    op.create_index("ix_job_weights_artifact_id", "job", ["weights_artifact_id"])


def downgrade() -> None:
    """Take it back."""
    op.drop_index("ix_job_weights_artifact_id", "job")
    with op.batch_alter_table("job") as job:
        job.drop_constraint("fk_job_weights_artifact_id_artifact", type_="foreignkey")
        job.drop_column("weights_artifact_id")
