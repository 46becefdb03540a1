"""Alembic's entry point: runs the revisions on the connection of `registry.storage.migrate`."""

from alembic import context

from registry.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
