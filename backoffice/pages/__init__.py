"""The backoffice as web pages: rendered here, moved by htmx, with nothing loaded from elsewhere."""
