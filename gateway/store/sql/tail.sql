-- What the front asks twice a second, to see what all processes on the file did.

-- name: newest
SELECT coalesce(max(id), 0) AS id FROM job_event

-- name: moves_after
SELECT
    e.id, e.job_id, e.verb, e.state, j.kind,
    max(e.at_ms - j.started_at_ms, 0) AS work_ms
FROM job_event AS e
LEFT JOIN job AS j ON j.id = e.job_id
WHERE e.id > :after
ORDER BY e.id
LIMIT :limit

-- name: progress
SELECT id, kind, progress, stage FROM job INDEXED BY jobs_for_rescue
WHERE state = 'running'
LIMIT :limit
