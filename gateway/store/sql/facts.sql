-- name: get
SELECT value, at_ms FROM fact WHERE name = ?

-- name: put
INSERT INTO fact (name, value, at_ms) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, at_ms = excluded.at_ms
