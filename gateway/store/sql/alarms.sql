-- name: open
INSERT INTO alarm (kind, subject, detail, opened_at_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, subject) WHERE closed_at_ms IS NULL DO NOTHING

-- name: close
UPDATE alarm SET closed_at_ms = ? WHERE id = ? AND closed_at_ms IS NULL

-- name: list_open
SELECT id, kind, subject, detail, opened_at_ms
FROM alarm
WHERE closed_at_ms IS NULL
ORDER BY opened_at_ms, id
LIMIT 100
