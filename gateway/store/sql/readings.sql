-- name: add_reading
INSERT INTO reading (
    reading_id, device_id, sensor_id, value, text, unit, error,
    boot_id, n, at_ms, clock, sent_at_ms, received_at_ms
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (reading_id) DO NOTHING

-- name: newest
SELECT coalesce(max(id), 0) FROM reading

-- name: find_contents
SELECT reading_id, id, sensor_id, value, text, unit, error
FROM reading
WHERE reading_id IN (SELECT value FROM json_each(?))

-- name: quarantine
INSERT INTO quarantine (digest, reading_id, device, reason, body, received_at_ms)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (digest) DO NOTHING
