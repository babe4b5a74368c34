-- name: open
INSERT INTO alarm (kind, subject, detail, opened_at_ms, last_at_ms, mark)
VALUES (:kind, :subject, :detail, :now_ms, :now_ms, :mark)
ON CONFLICT (kind, subject) WHERE closed_at_ms IS NULL DO NOTHING

-- name: happen
INSERT INTO alarm (kind, subject, detail, opened_at_ms, last_at_ms)
VALUES (:kind, :subject, :detail, :now_ms, :now_ms)
ON CONFLICT (kind, subject) WHERE closed_at_ms IS NULL
DO UPDATE SET times = times + 1, detail = excluded.detail, last_at_ms = excluded.last_at_ms

-- name: restate
UPDATE alarm SET detail = :detail
WHERE kind = :kind AND subject = :subject AND closed_at_ms IS NULL AND detail <> :detail

-- name: close_open
UPDATE alarm SET closed_at_ms = max(:now_ms, opened_at_ms)
WHERE kind = :kind AND subject = :subject AND closed_at_ms IS NULL

-- name: close
UPDATE alarm SET closed_at_ms = max(:now_ms, opened_at_ms), closed_by = :by
WHERE id = :id AND closed_at_ms IS NULL

-- name: acknowledge
UPDATE alarm SET acknowledged_at_ms = :now_ms, acknowledged_by = :by, note = :note
WHERE id = :id AND closed_at_ms IS NULL

-- name: get
SELECT
    id, kind, subject, detail, opened_at_ms, last_at_ms, times, closed_at_ms, closed_by,
    acknowledged_at_ms, acknowledged_by, note
FROM alarm
WHERE id = :id

-- name: list_open
SELECT
    id, kind, subject, detail, opened_at_ms
FROM alarm INDEXED BY alarm_open
WHERE closed_at_ms IS NULL
ORDER BY opened_at_ms, id
LIMIT 100

-- name: page_open
SELECT
    id, kind, subject, detail, opened_at_ms, last_at_ms, times, closed_at_ms, closed_by,
    acknowledged_at_ms, acknowledged_by, note
FROM alarm INDEXED BY alarm_open
WHERE closed_at_ms IS NULL AND id < :before
ORDER BY id DESC
LIMIT :limit

-- name: page_closed
SELECT
    id, kind, subject, detail, opened_at_ms, last_at_ms, times, closed_at_ms, closed_by,
    acknowledged_at_ms, acknowledged_by, note
FROM alarm
WHERE closed_at_ms IS NOT NULL AND id < :before
ORDER BY id DESC
LIMIT :limit

-- name: page_all
SELECT
    id, kind, subject, detail, opened_at_ms, last_at_ms, times, closed_at_ms, closed_by,
    acknowledged_at_ms, acknowledged_by, note
FROM alarm
WHERE id < :before
ORDER BY id DESC
LIMIT :limit

-- name: every_open
-- For the watcher.
SELECT id, kind, subject, detail, mark, opened_at_ms, last_at_ms, told_at_ms
FROM alarm INDEXED BY alarm_open
WHERE closed_at_ms IS NULL
LIMIT :limit

-- name: count_open
SELECT kind, count(*) AS count
FROM (SELECT kind FROM alarm INDEXED BY alarm_open WHERE closed_at_ms IS NULL LIMIT :scan)
GROUP BY kind

-- name: step
-- The wall clock was stepped: what is quiet stays quiet for as long as it was.
UPDATE alarm SET last_at_ms = max(coalesce(last_at_ms, opened_at_ms) + :step_ms, 0)
WHERE closed_at_ms IS NULL

-- name: untold
-- Of each kind and subject only after a while of quiet since the last that was told.
SELECT id, kind, subject, detail, opened_at_ms
FROM alarm AS one INDEXED BY alarm_open
WHERE closed_at_ms IS NULL
    AND told_at_ms IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM alarm AS before INDEXED BY alarms_told
        WHERE before.kind = one.kind AND before.subject = one.subject
            AND before.told_at_ms IS NOT NULL AND before.told_at_ms > :quiet_since_ms
            AND before.told_at_ms <= :now_ms
    )
LIMIT :limit

-- name: tell
UPDATE alarm SET told_at_ms = :now_ms WHERE id IN (SELECT value FROM json_each(:ids))

-- name: prune
DELETE FROM alarm
WHERE id IN (
    SELECT id FROM alarm INDEXED BY alarms_for_prune
    WHERE closed_at_ms IS NOT NULL AND closed_at_ms < :before_ms
    LIMIT :limit
)

-- name: job_failed
INSERT INTO alarm (kind, subject, detail, opened_at_ms, last_at_ms)
SELECT 'job_failed', kind, 'job ' || id || ': ' || substr(coalesce(error, ''), 1, 300), :now_ms, :now_ms
FROM job
WHERE id = :id
ON CONFLICT (kind, subject) WHERE closed_at_ms IS NULL
DO UPDATE SET times = times + 1, detail = excluded.detail, last_at_ms = excluded.last_at_ms

-- name: job_is_no_more_failed
-- Closes the alarms of those kinds of which none is left.
UPDATE alarm SET closed_at_ms = max(:now_ms, opened_at_ms)
WHERE kind = 'job_failed'
    AND closed_at_ms IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM job INDEXED BY failed_jobs_by_kind
        WHERE job.state = 'failed' AND job.kind = alarm.subject
    )
