-- Keys that are renewed and revoked, tokens of clients that can not sign, and logged-in operators.

ALTER TABLE device ADD COLUMN next_generation INTEGER;     -- made by a rotation, not used yet
ALTER TABLE device ADD COLUMN spent_generation INTEGER NOT NULL DEFAULT 0;  -- the newest ever made
ALTER TABLE device ADD COLUMN bearer_sha256 TEXT;          -- of its token, where it has one
ALTER TABLE device ADD COLUMN may_ask INTEGER NOT NULL DEFAULT 0;  -- for jobs

UPDATE device SET spent_generation = generation WHERE generation IS NOT NULL;

CREATE UNIQUE INDEX device_by_bearer ON device (bearer_sha256) WHERE bearer_sha256 IS NOT NULL;

-- Links that log an operator in, each once. Only what a link's secret hashes to is kept.
CREATE TABLE login_link (
    sha256 TEXT PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Browsers that are logged in; the cookie's value hashes to the key.
CREATE TABLE session (
    sha256 TEXT PRIMARY KEY,
    opened_at_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a device asked for, which it may read again. Few jobs are a device's.
CREATE INDEX jobs_by_device ON job (caller, id) WHERE caller GLOB 'device *';
