-- Heavy work that somebody asked for and nobody waits for.

CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,     -- an id that was pruned never comes again
    kind TEXT NOT NULL,
    args TEXT NOT NULL,                       -- JSON
    state TEXT NOT NULL DEFAULT 'pending',
    priority INTEGER NOT NULL DEFAULT 0,      -- higher first
    run_at_ms INTEGER NOT NULL,
    waits INTEGER NOT NULL DEFAULT 0,         -- 1: not an instant that somebody gave; moves with the clock
    attempts INTEGER NOT NULL DEFAULT 0,      -- tries that ended
    crashes INTEGER NOT NULL DEFAULT 0,       -- tries that never did
    progress INTEGER NOT NULL DEFAULT 0,
    stage TEXT,
    error TEXT,
    result TEXT,
    request_id TEXT,
    caller TEXT NOT NULL DEFAULT '',
    idempotency_key TEXT,
    fingerprint BLOB,                         -- of what was asked under that key
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL,
    deadline_from_ms INTEGER,                 -- the first claim
    started_at_ms INTEGER,                    -- the newest claim
    finished_at_ms INTEGER,
    token TEXT,                               -- of the worker that has it
    worker TEXT,
    lease_until_ms INTEGER,
    CONSTRAINT state_is_known CHECK (state IN ('pending', 'running', 'done', 'failed', 'discarded')),
    CONSTRAINT progress_is_percent CHECK (progress BETWEEN 0 AND 100),
    CONSTRAINT token_iff_running CHECK ((token IS NOT NULL) = (state = 'running')),
    CONSTRAINT lease_iff_running CHECK ((lease_until_ms IS NOT NULL) = (state = 'running')),
    CONSTRAINT finished_iff_final
        CHECK ((finished_at_ms IS NOT NULL) = (state IN ('done', 'failed', 'discarded')))
) STRICT;

CREATE INDEX jobs_for_claim ON job (priority DESC, run_at_ms, id) WHERE state = 'pending';
CREATE INDEX jobs_for_rescue ON job (lease_until_ms) WHERE state = 'running';
CREATE INDEX jobs_by_state ON job (state, id);
CREATE INDEX jobs_for_prune ON job (finished_at_ms) WHERE finished_at_ms IS NOT NULL;
CREATE UNIQUE INDEX jobs_by_idempotency_key ON job (caller, idempotency_key)
WHERE idempotency_key IS NOT NULL AND state <> 'discarded';

-- A job's whole life, a row for each move.
CREATE TABLE job_event (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    verb TEXT NOT NULL,
    state TEXT NOT NULL,                      -- after it
    worker TEXT,
    detail TEXT
) STRICT;

CREATE INDEX job_events_by_job ON job_event (job_id, id);

-- What a job does outside the database: the intention is here before the act, its result after.
CREATE TABLE effect (
    key TEXT PRIMARY KEY,
    job_id INTEGER NOT NULL,
    intended_at_ms INTEGER NOT NULL,
    done_at_ms INTEGER,
    result TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX effects_unknown ON effect (job_id) WHERE done_at_ms IS NULL;

-- What the wall clock was ahead of the machine's monotonic clock when it was last looked at.
CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    machine_boot TEXT NOT NULL,
    offset_ms INTEGER NOT NULL
) STRICT;

CREATE VIEW jobs AS
SELECT
    id, kind, args, state, priority, attempts, crashes, progress, stage, error, result, request_id,
    created_at_ms, run_at_ms, started_at_ms, finished_at_ms, lease_until_ms
FROM job;
