-- Files of readings that are being brought in: how far each got, moved with what it brought.

CREATE TABLE import (
    job_id INTEGER PRIMARY KEY,
    offset_bytes INTEGER NOT NULL DEFAULT 0,  -- of the first line that is still to be read
    line INTEGER NOT NULL DEFAULT 1,          -- its number is one more
    stored INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    bad INTEGER NOT NULL DEFAULT 0,
    first_at_ms INTEGER,                      -- of the readings it brought
    last_at_ms INTEGER,
    finished INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Lines that are no readings, until the report of their import is written.
CREATE TABLE import_bad_line (
    job_id INTEGER NOT NULL,
    line INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (job_id, line)
) STRICT, WITHOUT ROWID;
