-- name: intend
INSERT INTO effect (key, job_id, intended_at_ms) VALUES (?, ?, ?)
ON CONFLICT (key) DO NOTHING

-- name: find
SELECT done_at_ms, result FROM effect WHERE key = ?

-- name: conclude
UPDATE effect SET done_at_ms = ?, result = ? WHERE key = ?

-- name: withdraw
DELETE FROM effect WHERE key = ? AND done_at_ms IS NULL

-- name: forget_unknown
DELETE FROM effect WHERE job_id = ? AND done_at_ms IS NULL
