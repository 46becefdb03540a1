"""The errors of operations; the doors map them to answers."""

from enum import StrEnum


class ErrorCode(StrEnum):
    INVALID_REQUEST = "INVALID_REQUEST"
    UNAUTHORIZED = "UNAUTHORIZED"
    NOT_FOUND = "NOT_FOUND"
    STORAGE_ERROR = "STORAGE_ERROR"
    TIMEOUT = "TIMEOUT"
    INTERNAL_ERROR = "INTERNAL_ERROR"


NOT_NOW = "The registry cannot store anything at the moment."
NOT_CONFIRMED = "The registry did not confirm what was written."
"""Messages of temporary StorageErrors, for example during a failover of the database; callers retry."""


class RegistryError(Exception):
    """An error shown to the caller: `message` names the problem, `details` the given value and the remedy."""

    code: ErrorCode

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def as_dict(self) -> dict[str, str]:
        return {"code": self.code.value, "message": self.message, "details": self.details}


class InvalidRequest(RegistryError):
    """Malformed or out of range."""

    code = ErrorCode.INVALID_REQUEST


class Unauthorized(RegistryError):
    """No or wrong token, or the token may not touch that channel."""

    code = ErrorCode.UNAUTHORIZED


class NotFound(RegistryError):
    """No such channel, session or record, or nothing relevant."""

    code = ErrorCode.NOT_FOUND


class StorageError(RegistryError):
    """The registry or a store could not be read or written."""

    code = ErrorCode.STORAGE_ERROR


class OperationTimeout(RegistryError):
    """The operation ran past its limit."""

    code = ErrorCode.TIMEOUT


class InternalError(RegistryError):
    """A bug of the program, never a fault of the user's disk or request."""

    code = ErrorCode.INTERNAL_ERROR
