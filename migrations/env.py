"""Alembic's entry: migrates the database that texelgrad.db passes, or the one of the settings."""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models import Base
from texelgrad.models_access import ApiKey

assert ApiKey.metadata is Base.metadata  # both files' tables are known now

database: Database = context.config.attributes.get("database") or Database(Settings.load().database)

with database.engine.connect() as connection:
    driver_connection = connection.connection.driver_connection
    assert driver_connection is not None
    if database.is_sqlite:
        # Batch mode replaces a table by a changed copy; with foreign keys on, dropping the old one would cascade.
        driver_connection.execute("PRAGMA foreign_keys = OFF")
    else:
        # A migration that can't have its lock soon gives up instead of stopping the whole service behind it.
        connection.execute(text("SET lock_timeout = '30s'"))
        connection.commit()
    try:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=True,  # SQLite can't alter a column in place
            transaction_per_migration=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
        if database.is_sqlite and (broken := connection.execute(text("PRAGMA foreign_key_check")).first()):
            raise RuntimeError(f"the migration left a row that points nowhere: {tuple(broken)}")
    finally:
        connection.rollback()
        if database.is_sqlite:
            driver_connection.execute("PRAGMA foreign_keys = ON")
        else:
            connection.execute(text("RESET lock_timeout"))
            connection.commit()
