"""Look up access tokens, people, and sessions on the pages."""

from registry.storage.safety.page_sessions import begin_session as begin_session
from registry.storage.safety.page_sessions import end_session as end_session
from registry.storage.safety.page_sessions import find_session as find_session
from registry.storage.safety.page_sessions import renew_sessions as renew_sessions
from registry.storage.safety.page_sessions import use_code as use_code
from registry.storage.safety.tokens import PREFIX as PREFIX
from registry.storage.safety.tokens import ValidToken as ValidToken
from registry.storage.safety.tokens import find_token as find_token
from registry.storage.safety.tokens import get_token as get_token
from registry.storage.safety.tokens import has_tokens as has_tokens
from registry.storage.safety.tokens import list_people as list_people
from registry.storage.safety.tokens import list_tokens as list_tokens
from registry.storage.safety.tokens import note_use as note_use
