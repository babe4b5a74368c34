-- name: find
-- One row that holds all: the books of each [device, boot] of the first list, and the keys of the
-- sensors of each [device, sensor] of the second.
SELECT
    (
        SELECT json_group_array(
            json_array(
                d.name, d.id, d.boot, d.seq, b.name, b.id, b.highest, b.pruned_to,
                EXISTS (SELECT 1 FROM lost WHERE boot_id = b.id), b.first_seen_at_ms = 0
            )
        )
        FROM json_each(?) AS wanted
        JOIN device AS d ON d.name = wanted.value ->> 0
        LEFT JOIN boot AS b ON b.device_id = d.id AND b.name = wanted.value ->> 1
    ),
    (
        SELECT json_group_array(json_array(d.name, s.name, s.id))
        FROM json_each(?) AS wanted
        JOIN device AS d ON d.name = wanted.value ->> 0
        JOIN sensor AS s ON s.device_id = d.id AND s.name = wanted.value ->> 1
    )

-- name: add_device
INSERT INTO device (name, added_at_ms) VALUES (?, ?)
ON CONFLICT (name) DO NOTHING

-- name: add_sensor
INSERT INTO sensor (device_id, name) VALUES (?, ?)
RETURNING id

-- name: update_devices
-- Each row has the fields of books.Change, in order.
WITH change (
    id, stored, duplicates, quarantined, ignored, last_seen_at_ms, boot, seq, health, crash,
    crash_at_ms
) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE device
SET
    stored = device.stored + change.stored,
    duplicates = device.duplicates + change.duplicates,
    quarantined = device.quarantined + change.quarantined,
    ignored = device.ignored + change.ignored,
    last_seen_at_ms = coalesce(change.last_seen_at_ms, device.last_seen_at_ms),
    boot = coalesce(change.boot, device.boot),
    seq = coalesce(change.seq, device.seq),
    health = coalesce(change.health, device.health),
    crash = coalesce(change.crash, device.crash),
    crash_at_ms = coalesce(change.crash_at_ms, device.crash_at_ms)
FROM change
WHERE device.id = change.id

-- name: raise_highest
WITH risen (id, highest) AS (
    VALUES (?, ?)
)
UPDATE boot
SET highest = risen.highest
FROM risen
WHERE boot.id = risen.id
