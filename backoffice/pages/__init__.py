"""The backoffice as web pages: rendered on the server, updated by htmx, without content from other sites."""
