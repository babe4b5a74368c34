-- name: intend
INSERT INTO effect (key, job_id, intended_at_ms) VALUES (?, ?, ?)
ON CONFLICT (key) DO NOTHING

-- Whose it is of those that intended it is who did last; but nobody takes it from one at work.
-- name: take_over
UPDATE effect SET job_id = :job_id
WHERE key = :key
    AND done_at_ms IS NULL
    AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = effect.job_id AND job.state = 'running')

-- name: find
SELECT done_at_ms, result, job_id FROM effect WHERE key = ?

-- name: conclude
UPDATE effect SET done_at_ms = ?, result = ? WHERE key = ?

-- name: withdraw
DELETE FROM effect WHERE key = ? AND done_at_ms IS NULL

-- name: forget_unknown
DELETE FROM effect WHERE job_id = ? AND done_at_ms IS NULL
