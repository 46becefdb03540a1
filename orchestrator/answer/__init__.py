"""What an AI is given of a conversation: the right part, in the right size, honest about what is missing. Pure."""
