-- name: find
SELECT
    id, highest, pruned_to, EXISTS (SELECT 1 FROM lost WHERE boot_id = boot.id),
    first_seen_at_ms = 0
FROM boot
WHERE device_id = ? AND name = ?

-- name: add
-- first_seen_at_ms is 0 while only others brought readings of it, such as those of a file.
INSERT INTO boot (device_id, name, highest, first_seen_at_ms) VALUES (?, ?, 0, ?)
RETURNING id, highest, pruned_to, 0, 1

-- name: hear
UPDATE boot SET first_seen_at_ms = ? WHERE id = ?

-- name: open_gaps
SELECT first, last FROM gap WHERE boot_id = ?

-- name: add_gap
INSERT INTO gap (boot_id, first, last, opened_at_ms) VALUES (?, ?, ?, ?)

-- name: remove_gap
DELETE FROM gap WHERE boot_id = ? AND first = ?

-- name: lost
SELECT first, last FROM lost WHERE boot_id = ?

-- name: add_lost
INSERT INTO lost (boot_id, first, last, reported_at_ms) VALUES (?, ?, ?, ?)

-- name: remove_lost
DELETE FROM lost WHERE boot_id = ? AND first = ?

-- name: pruned_around
-- The end of the range of numbers that retention took away, nearest before this one.
SELECT last FROM pruned WHERE boot_id = ? AND first <= ? ORDER BY first DESC LIMIT 1
