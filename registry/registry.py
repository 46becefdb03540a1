"""Open a registry: a migrated database with functions to save, get and delete messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from registry.domain import Message, now
from registry.ingest.from_tool import ingest_from_tool
from registry.ingest.intake import StorageRules
from registry.storage.conversations.channels import find_channel
from registry.storage.conversations.messages import delete_message, message_item, messages_of
from registry.storage.database import UNLIMITED, Database, Limits, ReadTransaction, WriteTransaction, storage_errors
from registry.storage.migrate import migrate_engine
from registry.storage.safety.forgetting import ForgetSelection, affected_by, forget
from registry.storage.safety.masking import find_key, key_of, masked


class Registry(Database):
    """Stores conversations by channel. Opening it migrates the tables.

    Raises StorageError if the database cannot be opened or comes from a newer release.
    """

    def __init__(
        self, url: str, limits: Limits = UNLIMITED, storage_rules: StorageRules | None = None, read_url: str = ""
    ) -> None:
        super().__init__(url, limits, read_url)
        self._writing = self._writing.execution_options(storage_rules=storage_rules or StorageRules())
        try:
            migrate_engine(self.engine)
            self._make_key()
        except BaseException:
            self.close()
            raise

    def _make_key(self) -> None:
        with storage_errors("open"), self.engine.connect() as connection:
            if find_key(ReadTransaction(connection)) or self.is_read_only:
                return
        with storage_errors("open"), self._writing.begin() as connection:
            key_of(WriteTransaction(ReadTransaction(connection)))

    async def save_conversation(
        self,
        channel: str,
        messages: Sequence[Mapping[str, Any]],
        source: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Store messages `{role, text, timestamp?, context?}`; messages stored before keep their ids.

        Returns one id per message given, in order.
        """
        parsed = [Message.from_dict(message) for message in messages]
        _, saved = await self.write(
            lambda tx: ingest_from_tool(tx, channel, parsed, source=source, metadata=metadata or {}, received_at=now())
        )
        return saved.ids

    async def get_conversations(
        self,
        channel: str,
        limit: int = 20,
        from_timestamp: datetime | None = None,
        to_timestamp: datetime | None = None,
        include_deleted: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the last `limit` messages of a channel between two instants, oldest first."""

        def work(tx: Any) -> list[dict[str, Any]]:
            row = find_channel(tx, channel)
            if row is None:
                return []
            rows = messages_of(
                tx, row.number, limit=limit, from_=from_timestamp, to=to_timestamp, include_deleted=include_deleted
            )
            return [message_item(one) for one in rows]

        return await self.read(work)

    async def masked(self, value: Any) -> Any:
        """Return the value with each secret replaced by a mark."""
        return await self.write(lambda tx: masked(tx, value))

    async def delete_conversation(self, id: str, soft: bool = True) -> dict[str, Any]:
        """Delete one message; a soft deletion can be undone. Returns the deleted message; NotFound if there is none."""

        def work(tx: WriteTransaction) -> dict[str, Any]:
            if soft:
                return delete_message(tx, id)
            found = affected_by(tx, ForgetSelection(ids=(id,)))
            forget(tx, found)
            return {**message_item(found.messages[0]), "deleted": True}

        return await self.write(work)
