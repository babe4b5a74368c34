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

-- name: update_device
-- The parameters are the fields of books.Change, in order.
UPDATE device
SET
    stored = stored + ?2,
    duplicates = duplicates + ?3,
    quarantined = quarantined + ?4,
    ignored = ignored + ?5,
    last_seen_at_ms = coalesce(?6, last_seen_at_ms),
    boot = coalesce(?7, boot),
    seq = coalesce(?8, seq),
    health = coalesce(?9, health),
    crash = coalesce(?10, crash),
    crash_at_ms = coalesce(?11, crash_at_ms)
WHERE id = ?1

-- name: raise_highest
UPDATE boot SET highest = ?2 WHERE id = ?1
