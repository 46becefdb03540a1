"""Alembic's entry: runs the versions on the connection that `registry.storage.migrate` hands in."""

from alembic import context

from registry.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
