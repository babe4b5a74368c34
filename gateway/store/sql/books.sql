-- name: find
-- One row that holds all: the books of each [device, boot] in the list.
SELECT json_group_array(
    json_array(
        d.name, d.id, d.boot, d.seq, b.name, b.id, b.highest, b.pruned_to,
        EXISTS (SELECT 1 FROM lost WHERE boot_id = b.id)
    )
)
FROM json_each(?) AS wanted
JOIN device AS d ON d.name = wanted.value ->> 0
LEFT JOIN boot AS b ON b.device_id = d.id AND b.name = wanted.value ->> 1

-- name: find_sensors
-- One row that holds all: the key of each [device_id, name] in the list.
SELECT json_group_array(json_array(s.device_id, s.name, s.id))
FROM json_each(?) AS wanted
JOIN sensor AS s ON s.device_id = wanted.value ->> 0 AND s.name = wanted.value ->> 1

-- name: add_device
INSERT INTO device (name, added_at_ms) VALUES (?, ?)
ON CONFLICT (name) DO NOTHING

-- name: add_sensor
INSERT INTO sensor (device_id, name) VALUES (?, ?)
RETURNING id

-- name: update_devices
-- Each change is an array with the fields of books.Change, in order.
UPDATE device
SET
    stored = stored + (change.value ->> 1),
    duplicates = duplicates + (change.value ->> 2),
    quarantined = quarantined + (change.value ->> 3),
    ignored = ignored + (change.value ->> 4),
    last_seen_at_ms = coalesce(change.value ->> 5, last_seen_at_ms),
    boot = coalesce(change.value ->> 6, device.boot),
    seq = coalesce(change.value ->> 7, seq),
    health = coalesce(change.value ->> 8, health),
    crash = coalesce(change.value ->> 9, crash),
    crash_at_ms = coalesce(change.value ->> 10, crash_at_ms)
FROM json_each(?) AS change
WHERE device.id = change.value ->> 0

-- name: raise_highest
UPDATE boot
SET highest = risen.value ->> 1
FROM json_each(?) AS risen
WHERE boot.id = risen.value ->> 0
