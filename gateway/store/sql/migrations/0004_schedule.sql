-- Jobs that are asked for again and again. A slot is an instant at which one was due.

CREATE TABLE schedule (
    name TEXT PRIMARY KEY,
    rule TEXT NOT NULL,                       -- cron expression and time zone
    since_ms INTEGER NOT NULL                 -- what was due before is nobody's loss
) STRICT, WITHOUT ROWID;

CREATE TABLE slot (
    schedule TEXT NOT NULL,
    slot_ms INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    PRIMARY KEY (schedule, slot_ms)
) STRICT, WITHOUT ROWID;
