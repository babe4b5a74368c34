-- name: find_device
SELECT id, boot, seq FROM device WHERE name = ?

-- name: add_device
INSERT INTO device (name, added_at_ms) VALUES (?, ?)
ON CONFLICT (name) DO NOTHING

-- name: find_sensor
SELECT id FROM sensor WHERE device_id = ? AND name = ?

-- name: add_sensor
INSERT INTO sensor (device_id, name) VALUES (?, ?)
RETURNING id

-- name: add_reading
INSERT INTO reading (
    reading_id, device_id, sensor_id, value, text, unit, error,
    boot_id, n, at_ms, clock, sent_at_ms, received_at_ms
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (reading_id) DO NOTHING

-- name: find_contents
SELECT reading_id, sensor_id, value, text, unit, error
FROM reading
WHERE reading_id IN (SELECT value FROM json_each(?))

-- name: quarantine
INSERT INTO quarantine (digest, reading_id, device, reason, body, received_at_ms)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (digest) DO NOTHING

-- name: count
UPDATE device
SET stored = stored + ?, duplicates = duplicates + ?, quarantined = quarantined + ?, ignored = ignored + ?
WHERE id = ?

-- name: hear
UPDATE device
SET
    last_seen_at_ms = ?,
    boot = coalesce(?, boot),
    seq = ?,
    health = coalesce(?, health)
WHERE id = ?

-- name: note_crash
UPDATE device SET crash = ?, crash_at_ms = ? WHERE id = ?
