-- name: newest_receipt
SELECT (SELECT received_at_ms FROM reading ORDER BY id DESC LIMIT 1)

-- name: count_keyed
SELECT count(*) FROM device WHERE generation IS NOT NULL
