-- name: begin
INSERT INTO import (job_id) VALUES (?) ON CONFLICT (job_id) DO NOTHING

-- name: find
SELECT offset_bytes, line, stored, duplicates, bad, first_at_ms, last_at_ms, finished
FROM import
WHERE job_id = ?

-- Another one when somebody else has written meanwhile.
-- name: version
PRAGMA data_version

-- name: advance
UPDATE import
SET
    offset_bytes = :offset_bytes, line = :line, stored = :stored, duplicates = :duplicates,
    bad = :bad, first_at_ms = :first_at_ms, last_at_ms = :last_at_ms, finished = :finished
WHERE job_id = :job_id

-- name: add_bad_lines
INSERT INTO import_bad_line (job_id, line, reason)
SELECT :job_id, value ->> 0, value ->> 1 FROM json_each(:lines)

-- name: bad_lines
SELECT line, reason FROM import_bad_line
WHERE job_id = :job_id AND line > :after
ORDER BY line
LIMIT :limit

-- name: forget_bad_lines
DELETE FROM import_bad_line WHERE job_id = ?

-- name: prune_bad_lines
DELETE FROM import_bad_line
WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = import_bad_line.job_id)

-- name: prune
DELETE FROM import WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = import.job_id)
