"""The local process that all chat windows and reading commands share."""
