"""The one local process that all chat windows and commands share: where it is, who asks it, and the process itself."""
