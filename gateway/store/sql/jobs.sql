-- name: enqueue
INSERT INTO job (
    kind, args, priority, run_at_ms, waits, request_id, caller, idempotency_key, fingerprint,
    created_at_ms
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (caller, idempotency_key) WHERE idempotency_key IS NOT NULL AND state <> 'discarded'
DO NOTHING
RETURNING id

-- name: find_by_key
SELECT id, fingerprint FROM job
WHERE caller = ? AND idempotency_key = ? AND state <> 'discarded'

-- name: running_by_kind
SELECT kind, count(*) FROM job WHERE state = 'running' GROUP BY kind

-- name: claim
UPDATE job
SET
    state = 'running',
    token = lower(hex(randomblob(16))),
    worker = :worker,
    waits = 0,
    progress = 0,
    stage = NULL,
    started_at_ms = :now_ms,
    deadline_from_ms = coalesce(deadline_from_ms, :now_ms),
    lease_until_ms = :lease_until_ms
WHERE id IN (
    SELECT id FROM job INDEXED BY jobs_for_claim
    WHERE state = 'pending'
        AND run_at_ms <= :now_ms
        AND kind IN (SELECT value FROM json_each(:kinds))
    ORDER BY priority DESC, run_at_ms, id
    LIMIT :count
)
RETURNING id, kind, args, token, attempts, crashes, request_id

-- name: renew
UPDATE job
SET
    lease_until_ms = :lease_until_ms,
    progress = coalesce(:progress, progress),
    stage = coalesce(:stage, stage)
WHERE id = :id AND state = 'running' AND token = :token
RETURNING cancel_requested

-- name: held
SELECT attempts, crashes, deadline_from_ms, kind
FROM job
WHERE id = ? AND state = 'running' AND token = ?

-- Of the [id, token, result] in :ended, those that are still their worker's. The + keeps SQLite
-- from looking for each of them among all that run.
-- name: finish
UPDATE job
SET
    state = 'done', attempts = attempts + 1, progress = 100, error = NULL,
    result = json_extract(ended.value, '$[2]'),
    finished_at_ms = :now_ms, cancel_requested = 0,
    token = NULL, worker = NULL, lease_until_ms = NULL
FROM json_each(:ended) AS ended
WHERE
    job.id = json_extract(ended.value, '$[0]')
    AND +job.state = 'running'
    AND job.token = json_extract(ended.value, '$[1]')
RETURNING job.id

-- name: try_later
UPDATE job
SET
    state = 'pending', attempts = :attempts, crashes = :crashes, error = coalesce(:error, error),
    run_at_ms = :run_at_ms, waits = 1,
    token = NULL, worker = NULL, lease_until_ms = NULL
WHERE id = :id AND state = 'running' AND token = :token

-- name: give_up
UPDATE job
SET
    state = 'failed', attempts = :attempts, crashes = :crashes, error = :error,
    finished_at_ms = :now_ms, cancel_requested = 0,
    token = NULL, worker = NULL, lease_until_ms = NULL
WHERE id = :id AND state = 'running' AND token = :token

-- name: drop
UPDATE job
SET
    state = 'discarded', finished_at_ms = :now_ms,
    token = NULL, worker = NULL, lease_until_ms = NULL
WHERE id = :id AND state = 'running' AND token = :token

-- name: expired
SELECT id, kind, token, worker, attempts, crashes, cancel_requested, deadline_from_ms
FROM job INDEXED BY jobs_for_rescue
WHERE state = 'running' AND lease_until_ms <= ?
LIMIT 100

-- name: cancel_pending
UPDATE job SET state = 'discarded', finished_at_ms = :now_ms
WHERE id = :id AND state = 'pending'

-- name: cancel_running
UPDATE job SET cancel_requested = 1
WHERE id = :id AND state = 'running'

-- name: retry
UPDATE job
SET
    state = 'pending', attempts = 0, crashes = 0, deadline_from_ms = NULL, finished_at_ms = NULL,
    run_at_ms = :now_ms, waits = 1, progress = 0, stage = NULL, cancel_requested = 0
WHERE id = :id AND state = 'failed'

-- name: discard
UPDATE job SET state = 'discarded', finished_at_ms = :now_ms
WHERE id = :id AND state = 'failed'

-- name: state_of
SELECT state FROM job WHERE id = ?

-- name: add_event
INSERT INTO job_event (job_id, at_ms, verb, state, worker, detail) VALUES (?, ?, ?, ?, ?, ?)

-- name: events
SELECT at_ms, verb, state, worker, detail FROM job_event
WHERE job_id = :id
ORDER BY id DESC
LIMIT 200

-- name: get
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, priority,
    run_at_ms, created_at_ms, started_at_ms, finished_at_ms, request_id, result, caller
FROM job
WHERE id = :id

-- name: some
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, priority,
    run_at_ms, created_at_ms, started_at_ms, finished_at_ms, request_id, result, caller
FROM job
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: page
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, priority,
    run_at_ms, created_at_ms, started_at_ms, finished_at_ms, request_id, result, caller
FROM job
WHERE id < :before
ORDER BY id DESC
LIMIT :limit

-- name: page_of_state
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, priority,
    run_at_ms, created_at_ms, started_at_ms, finished_at_ms, request_id, result, caller
FROM job INDEXED BY jobs_by_state
WHERE state = :state AND id < :before
ORDER BY id DESC
LIMIT :limit

-- The GLOB is what the index says of itself; without it SQLite does not take it.
-- name: page_of_device
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, priority,
    run_at_ms, created_at_ms, started_at_ms, finished_at_ms, request_id, result, caller
FROM job INDEXED BY jobs_by_device
WHERE caller = :caller AND caller GLOB 'device *' AND id < :before
    AND (:state IS NULL OR state = :state)
ORDER BY id DESC
LIMIT :limit

-- name: next_due
SELECT min(run_at_ms) AS run_at_ms FROM job WHERE state = 'pending'

-- Of at most :scan jobs in each state; the oldest due one by a step of jobs_for_claim for each
-- priority there is.
-- name: counts
WITH RECURSIVE level (priority) AS (
    SELECT max(priority) FROM job WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT max(priority) FROM job WHERE state = 'pending' AND priority < level.priority)
    FROM level
    WHERE level.priority IS NOT NULL
    LIMIT :levels
)
SELECT
    (SELECT count(*) FROM (SELECT id FROM job WHERE state = 'pending' LIMIT :scan)) AS pending,
    (SELECT count(*) FROM (SELECT id FROM job WHERE state = 'running' LIMIT :scan)) AS running,
    (SELECT count(*) FROM (SELECT id FROM job WHERE state = 'failed' LIMIT :scan)) AS failed,
    (
        SELECT min(
            (
                SELECT min(run_at_ms) FROM job
                WHERE state = 'pending' AND priority = level.priority AND run_at_ms <= :now_ms
            )
        )
        FROM level
    ) AS oldest_due_ms

-- name: prune_jobs
DELETE FROM job
WHERE id IN (
    SELECT id FROM job INDEXED BY jobs_for_prune
    WHERE finished_at_ms < :before_ms AND state IN (SELECT value FROM json_each(:states))
    LIMIT :limit
)

-- name: prune_events
-- Among the first :limit there are, for the old ones stand first.
DELETE FROM job_event
WHERE id IN (SELECT id FROM job_event ORDER BY id LIMIT :limit) AND at_ms < :before_ms

-- name: clock
SELECT machine_boot, offset_ms FROM clock WHERE id = 1

-- name: set_clock
INSERT INTO clock (id, machine_boot, offset_ms) VALUES (1, :machine_boot, :offset_ms)
ON CONFLICT (id) DO UPDATE SET machine_boot = :machine_boot, offset_ms = :offset_ms

-- name: move_leases
UPDATE job SET lease_until_ms = lease_until_ms + ? WHERE state = 'running'

-- name: move_waits
UPDATE job SET run_at_ms = max(run_at_ms + ?, 0) WHERE state = 'pending' AND waits = 1

-- name: move_deadlines
UPDATE job SET deadline_from_ms = max(deadline_from_ms + ?, 0)
WHERE state IN ('pending', 'running') AND deadline_from_ms IS NOT NULL

-- name: end_leases
UPDATE job SET lease_until_ms = 0 WHERE state = 'running'
