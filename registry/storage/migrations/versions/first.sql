CREATE TABLE channel (
    number {serial},
    name TEXT NOT NULL,
    source VARCHAR(64) NOT NULL,
    session_id TEXT,
    title TEXT,
    nickname TEXT,
    project_path TEXT,
    project_name TEXT,
    summary TEXT,
    made_summary TEXT,
    made_summary_by VARCHAR(64),
    made_summary_of VARCHAR(64),
    first_message_preview TEXT,
    meta {json} NOT NULL,
    message_count INTEGER NOT NULL,
    seq_count INTEGER NOT NULL,
    token_count BIGINT NOT NULL,
    created_at {time} NOT NULL,
    updated_at {time} NOT NULL,
    last_accessed {time},
    access_count INTEGER DEFAULT '0' NOT NULL,
    tokens_delivered BIGINT DEFAULT '0' NOT NULL,
    deleted BOOLEAN NOT NULL,
    owner TEXT,
    shared_with VARCHAR(16),
    shared_until {time},
    repository TEXT,
    UNIQUE (name),
    UNIQUE (nickname)
);

CREATE INDEX ix_channel_project ON channel (project_path, deleted, source, updated_at, project_name, message_count, token_count, repository);

CREATE INDEX ix_channel_session_id ON channel (session_id);

CREATE INDEX ix_channel_updated_at ON channel (updated_at, number);

CREATE TABLE embedding_model (
    number {serial},
    name TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    calibration INTEGER NOT NULL,
    background FLOAT NOT NULL,
    spread FLOAT NOT NULL,
    holder VARCHAR(40),
    held_until {time},
    UNIQUE (name)
);

CREATE TABLE execution (
    number {serial},
    id VARCHAR(40) NOT NULL,
    operation VARCHAR(32) NOT NULL,
    source VARCHAR(64) NOT NULL,
    client TEXT,
    channel TEXT,
    status VARCHAR(16) NOT NULL,
    error_code VARCHAR(32),
    error {json},
    started_at {time} NOT NULL,
    finished_at {time} NOT NULL,
    duration_ms FLOAT NOT NULL,
    duration_rounded FLOAT DEFAULT '0' NOT NULL,
    request {json} NOT NULL,
    result {json},
    steps {json} NOT NULL,
    token TEXT,
    asked VARCHAR(200) DEFAULT '' NOT NULL,
    UNIQUE (id)
);

CREATE INDEX ix_execution_channel ON execution (channel, started_at, number, operation, source, status, error_code, duration_ms);

CREATE INDEX ix_execution_operation ON execution (operation, started_at, number, source, status, channel);

CREATE INDEX ix_execution_started_at ON execution (started_at, number, operation, source, status, error_code, duration_ms, channel, asked, client);

CREATE INDEX ix_execution_token ON execution (token, started_at) WHERE token IS NOT NULL;

CREATE TABLE extract_result (
    number {serial},
    id VARCHAR(40) NOT NULL,
    record_type VARCHAR(32) NOT NULL,
    channel TEXT NOT NULL,
    result_type VARCHAR(16) NOT NULL,
    items {json} NOT NULL,
    metadata {json},
    timestamp {time} NOT NULL,
    deleted BOOLEAN NOT NULL,
    token TEXT,
    UNIQUE (id)
);

CREATE INDEX ix_extract_result_channel ON extract_result (channel, timestamp);

CREATE INDEX ix_extract_result_timestamp ON extract_result (timestamp);

CREATE TABLE forgotten (
    digest {bytes} NOT NULL,
    what VARCHAR(16) NOT NULL,
    receipt VARCHAR(40) NOT NULL,
    forgotten_at {time} NOT NULL,
    PRIMARY KEY (digest)
);

CREATE INDEX ix_forgotten_receipt ON forgotten (receipt);

CREATE TABLE rating (
    execution_id VARCHAR(40) NOT NULL,
    operation VARCHAR(32) NOT NULL,
    source VARCHAR(64) NOT NULL,
    useful BOOLEAN NOT NULL,
    rated_at {time} NOT NULL,
    token TEXT,
    PRIMARY KEY (execution_id)
);

CREATE INDEX ix_rating_rated_at ON rating (rated_at);

CREATE TABLE registry_key (
    number {small_serial} NOT NULL,
    "key" {bytes} NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE remote (
    url TEXT NOT NULL,
    place {number} NOT NULL,
    sent {number} NOT NULL,
    answered_at {time} NOT NULL,
    edit_place {number} DEFAULT '0' NOT NULL,
    registry TEXT,
    known_as TEXT,
    PRIMARY KEY (url)
);

CREATE TABLE page_session (
    digest {bytes} NOT NULL,
    token_number {number},
    person TEXT,
    access {json},
    until {time} NOT NULL,
    PRIMARY KEY (digest)
);

CREATE TABLE saved_view (
    number {serial},
    id VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at {time} NOT NULL,
    UNIQUE (id),
    UNIQUE (name)
);

CREATE TABLE store (
    source VARCHAR(64) NOT NULL,
    path TEXT NOT NULL,
    synced_at {time} NOT NULL,
    stamp TEXT NOT NULL,
    seen INTEGER NOT NULL,
    parsed INTEGER NOT NULL,
    skipped {json} NOT NULL,
    PRIMARY KEY (source, path)
);

CREATE TABLE token (
    number {serial},
    id VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    digest {bytes} NOT NULL,
    scope VARCHAR(16) NOT NULL,
    channels {json} NOT NULL,
    projects {json} NOT NULL,
    created_at {time} NOT NULL,
    expires_at {time},
    revoked_at {time},
    used_at {time},
    owner TEXT,
    per_minute INTEGER,
    UNIQUE (id),
    UNIQUE (name),
    UNIQUE (digest)
);

CREATE TABLE channel_alias (
    name TEXT NOT NULL,
    channel_number {number} NOT NULL,
    PRIMARY KEY (name),
    FOREIGN KEY(channel_number) REFERENCES channel (number) ON DELETE CASCADE
);

CREATE INDEX ix_channel_alias_channel_number ON channel_alias (channel_number);

CREATE TABLE channel_link (
    told {number} NOT NULL,
    session {number} NOT NULL,
    PRIMARY KEY (told, session),
    FOREIGN KEY(told) REFERENCES channel (number) ON DELETE CASCADE,
    FOREIGN KEY(session) REFERENCES channel (number) ON DELETE CASCADE
);

CREATE INDEX ix_channel_link_session ON channel_link (session);

CREATE TABLE conversation (
    number {serial},
    id VARCHAR(40) NOT NULL,
    record_type VARCHAR(32) NOT NULL,
    source VARCHAR(64) NOT NULL,
    channel TEXT NOT NULL,
    payload {json} NOT NULL,
    timestamp {time} NOT NULL,
    actor VARCHAR(64) NOT NULL,
    deleted BOOLEAN NOT NULL,
    channel_number {number} NOT NULL,
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    place FLOAT NOT NULL,
    role VARCHAR(16) NOT NULL,
    text TEXT NOT NULL,
    digest {bytes} NOT NULL,
    received_at {time} NOT NULL,
    native_id TEXT,
    length INTEGER NOT NULL,
    analyzer_version INTEGER NOT NULL,
    with_channel BOOLEAN DEFAULT {false} NOT NULL,
    forgotten BOOLEAN DEFAULT {false} NOT NULL,
    of_other_person BOOLEAN DEFAULT {false} NOT NULL,
    UNIQUE (channel_number, seq),
    UNIQUE (id),
    FOREIGN KEY(channel_number) REFERENCES channel (number) ON DELETE CASCADE
);

CREATE INDEX ix_conversation_digest ON conversation (channel_number, digest);

CREATE INDEX ix_conversation_native_id ON conversation (channel_number, native_id);

CREATE INDEX ix_conversation_place ON conversation (channel_number, place);

CREATE INDEX ix_conversation_places ON conversation (channel_number, timestamp, number, seq, role, deleted);

CREATE INDEX ix_conversation_time ON conversation (timestamp, number, deleted);

CREATE INDEX ix_conversation_turn ON conversation (channel_number, turn);

CREATE TABLE pin (
    channel_number {number} NOT NULL,
    pinned_at {time} NOT NULL,
    PRIMARY KEY (channel_number),
    FOREIGN KEY(channel_number) REFERENCES channel (number) ON DELETE CASCADE
);

CREATE TABLE store_session (
    source VARCHAR(64) NOT NULL,
    path TEXT NOT NULL,
    "key" TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    channel_number {number},
    PRIMARY KEY (source, path, "key"),
    FOREIGN KEY(channel_number) REFERENCES channel (number) ON DELETE SET NULL
);

CREATE TABLE tag (
    channel_number {number} NOT NULL,
    name VARCHAR(64) NOT NULL,
    PRIMARY KEY (channel_number, name),
    FOREIGN KEY(channel_number) REFERENCES channel (number) ON DELETE CASCADE
);

CREATE INDEX ix_tag_name ON tag (name);

CREATE TABLE edit (
    number {serial},
    channel_number {number},
    message_number {number},
    field VARCHAR(80) NOT NULL,
    value {json} NOT NULL,
    done_at {time} NOT NULL,
    of_other_person BOOLEAN DEFAULT {false} NOT NULL,
    FOREIGN KEY(channel_number) REFERENCES channel (number) ON DELETE CASCADE,
    FOREIGN KEY(message_number) REFERENCES conversation (number) ON DELETE CASCADE
);

CREATE INDEX ix_edit_channel_number ON edit (channel_number, field);

CREATE INDEX ix_edit_message_number ON edit (message_number);

CREATE TABLE expectation (
    number {serial},
    id VARCHAR(40) NOT NULL,
    request {json} NOT NULL,
    message_number {number} NOT NULL,
    created_at {time} NOT NULL,
    UNIQUE (id),
    FOREIGN KEY(message_number) REFERENCES conversation (number) ON DELETE CASCADE
);

CREATE INDEX ix_expectation_message_number ON expectation (message_number);

CREATE TABLE message_alias (
    id VARCHAR(40) NOT NULL,
    number {number} NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(number) REFERENCES conversation (number) ON DELETE CASCADE
);

CREATE INDEX ix_message_alias_number ON message_alias (number);

CREATE TABLE message_vector (
    number {serial},
    message_number {number} NOT NULL,
    model_number {number} NOT NULL,
    digest {bytes} NOT NULL,
    vector {bytes} NOT NULL,
    UNIQUE (message_number, model_number),
    FOREIGN KEY(message_number) REFERENCES conversation (number) ON DELETE CASCADE,
    FOREIGN KEY(model_number) REFERENCES embedding_model (number) ON DELETE CASCADE
);

CREATE TABLE remote_message (
    url TEXT NOT NULL,
    number {number} NOT NULL,
    id VARCHAR(40),
    PRIMARY KEY (url, number),
    FOREIGN KEY(number) REFERENCES conversation (number) ON DELETE CASCADE
);

CREATE INDEX ix_remote_message ON remote_message (url, id);

CREATE INDEX ix_remote_message_number ON remote_message (number);

CREATE TABLE edit_token (
    number {number} NOT NULL,
    token TEXT NOT NULL,
    PRIMARY KEY (number, token),
    FOREIGN KEY(number) REFERENCES edit (number) ON DELETE CASCADE
);

CREATE TABLE remote_edit (
    url TEXT NOT NULL,
    number {number} NOT NULL,
    why TEXT,
    PRIMARY KEY (url, number),
    FOREIGN KEY(number) REFERENCES edit (number) ON DELETE CASCADE
);

CREATE INDEX ix_remote_edit_number ON remote_edit (number);
