-- What the rules of the alarms look at. Each looks at a bounded number of rows.

-- name: devices
-- Those that were ever heard.
SELECT
    d.id, d.name, d.last_seen_at_ms, d.boot, d.seq, d.stored,
    json_extract(d.health, '$.period_ms') AS period_ms,
    coalesce(json_extract(d.health, '$.dropped'), 0) AS dropped,
    w.device_id IS NOT NULL AS is_known, coalesce(w.dropped, 0) AS dropped_before,
    coalesce(w.nonces, '') AS nonces, w.interval_ms
FROM device AS d
LEFT JOIN device_watch AS w ON w.device_id = d.id
WHERE d.id > :after AND d.last_seen_at_ms IS NOT NULL
ORDER BY d.id
LIMIT :limit

-- name: remember
INSERT INTO device_watch (device_id, dropped, nonces, interval_ms)
VALUES (:id, :dropped, :nonces, :interval_ms)
ON CONFLICT (device_id) DO UPDATE
SET dropped = excluded.dropped, nonces = excluded.nonces, interval_ms = excluded.interval_ms

-- name: arrivals
-- The boots of the newest readings of a device, the newest first.
SELECT b.name AS boot
FROM (SELECT boot_id FROM reading WHERE device_id = :id ORDER BY id DESC LIMIT :limit) AS newest
JOIN boot AS b ON b.id = newest.boot_id

-- name: is_bringing_in
-- Whether a job stores, or just stored, what no device sends now.
SELECT 1 AS found
FROM (
    SELECT kind FROM job INDEXED BY jobs_by_state WHERE state = 'running'
    UNION ALL
    SELECT kind
    FROM (
        SELECT kind FROM job INDEXED BY jobs_for_prune
        WHERE finished_at_ms IS NOT NULL AND finished_at_ms > :since_ms
        ORDER BY finished_at_ms DESC
        LIMIT 1000
    )
)
WHERE kind IN ('import_readings', 'reprocess_readings')
LIMIT 1

-- name: gapped
-- A step for each boot that misses something, however much that is.
WITH RECURSIVE step (boot_id) AS (
    SELECT min(boot_id) FROM gap
    UNION ALL
    SELECT (SELECT min(boot_id) FROM gap WHERE boot_id > step.boot_id)
    FROM step
    WHERE step.boot_id IS NOT NULL
    LIMIT :limit
)
SELECT
    d.name AS device, b.name AS boot, b.id AS boot_id,
    (
        SELECT json_group_array(json_array(first, last))
        FROM (SELECT first, last FROM gap WHERE boot_id = step.boot_id ORDER BY first LIMIT 3)
    ) AS ranges,
    (
        SELECT sum(last - first + 1)
        FROM (SELECT first, last FROM gap WHERE boot_id = step.boot_id LIMIT 1000)
    ) AS missing
FROM step
CROSS JOIN boot AS b ON b.id = step.boot_id
CROSS JOIN device AS d ON d.id = b.device_id

-- name: oldest_due
-- A step of jobs_for_claim for each priority there is.
WITH RECURSIVE level (priority) AS (
    SELECT max(priority) FROM job WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT max(priority) FROM job WHERE state = 'pending' AND priority < level.priority)
    FROM level
    WHERE level.priority IS NOT NULL
    LIMIT 100
)
SELECT
    min(
        (
            SELECT min(run_at_ms) FROM job
            WHERE state = 'pending' AND priority = level.priority AND run_at_ms <= :now_ms
        )
    ) AS run_at_ms
FROM level

-- name: progress
-- What changes whenever a try ends or a job that runs gets on; of the newest moves only.
SELECT
    (
        SELECT max(id) FROM (SELECT id, verb FROM job_event ORDER BY id DESC LIMIT 2000)
        WHERE verb IN ('finish', 'fail', 'drop')
    ) AS ended,
    (SELECT sum(progress) FROM (SELECT progress FROM job WHERE state = 'running' LIMIT 1000)) AS done

-- name: failed_kinds
-- Those of the kinds of which a job is failed.
SELECT value AS kind
FROM json_each(:kinds) AS wanted
WHERE EXISTS (
    SELECT 1 FROM job INDEXED BY failed_jobs_by_kind
    WHERE job.state = 'failed' AND job.kind = wanted.value
)
