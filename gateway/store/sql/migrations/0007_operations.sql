-- What running a gateway for years needs: facts about itself, and what retention took away.

CREATE TABLE fact (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    at_ms INTEGER NOT NULL                    -- when it came to be so
) STRICT, WITHOUT ROWID;

-- Numbers of a boot that were stored once and that retention took away: just these, for a number
-- between them may be in quarantine, or one that the device called lost.
CREATE TABLE pruned (
    boot_id INTEGER NOT NULL REFERENCES boot (id),
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (boot_id, first),
    CONSTRAINT range_is_not_empty CHECK (first <= last)
) STRICT, WITHOUT ROWID;

-- The same of ids that are not in the grammar: nothing shorter tells that one was here.
CREATE TABLE pruned_id (
    reading_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
