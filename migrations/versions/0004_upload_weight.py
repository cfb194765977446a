"""Uploads in pieces name the column that holds weights of rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("upload") as upload:
        upload.add_column(sa.Column("weight", sa.Text(), nullable=True))


def downgrade() -> None:
    """Take it back."""
    with op.batch_alter_table("upload") as upload:
        upload.drop_column("weight")
