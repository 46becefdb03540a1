"""The backoffice: the HTTP API under /bo, and the pages."""
