-- name: first_arrival
SELECT coalesce(min(id), 1) AS id FROM reading

-- Of the next :scan readings behind :after, up to which all are old. The order in which they came
-- counts: one that came before a young one, at a time when the clock was wrong, is not old yet.
-- name: old_readings
WITH seen AS MATERIALIZED (
    SELECT id, received_at_ms FROM reading WHERE id > :after ORDER BY id LIMIT :scan
),
young AS MATERIALIZED (
    SELECT min(id) AS id FROM seen
    WHERE received_at_ms >= :before_ms AND received_at_ms <= :now_ms
)
SELECT
    (
        SELECT max(id) FROM seen
        WHERE received_at_ms >= :sane_ms AND received_at_ms < :before_ms
            AND id < coalesce((SELECT id FROM young), 9223372036854775807)
    ) AS upto,
    (SELECT max(id) FROM seen) AS seen,
    (SELECT id FROM young) IS NOT NULL AS met_young

-- Where a piece ends: not beyond :upto, nor beyond what the aggregates have counted, and never the
-- newest reading, for its key must not come again.
-- name: piece_end
SELECT max(id) FROM (
    SELECT id FROM reading
    WHERE id <= min(
        :upto,
        (SELECT arrival FROM aggregate_cursor WHERE id = 1),
        (SELECT max(id) - 1 FROM reading)
    )
    ORDER BY id
    LIMIT :rows
)

-- name: islands
-- Runs of numbers among the readings up to :end, as [boot, first, last].
SELECT boot_id, min(n), max(n)
FROM (
    SELECT boot_id, n, n - row_number() OVER (PARTITION BY boot_id ORDER BY n) AS island
    FROM reading
    WHERE id <= :end AND n IS NOT NULL
)
GROUP BY boot_id, island

-- name: extend
-- What begins where a range ends makes that range longer.
UPDATE pruned
SET last = island.value ->> 2
FROM json_each(:islands) AS island
WHERE pruned.boot_id = island.value ->> 0 AND pruned.last = (island.value ->> 1) - 1

-- name: add
INSERT INTO pruned (boot_id, first, last)
SELECT island.value ->> 0, island.value ->> 1, island.value ->> 2
FROM json_each(:islands) AS island
WHERE NOT EXISTS (
    SELECT 1 FROM pruned
    WHERE boot_id = island.value ->> 0
        AND first <= island.value ->> 1 AND last >= island.value ->> 2
)

-- name: touching
-- Ranges that have come to touch, as [boot, first of the former, first and last of the latter].
SELECT former.boot_id, former.first, latter.first, latter.last
FROM json_each(:islands) AS island
CROSS JOIN pruned AS latter
    ON latter.boot_id = island.value ->> 0
        AND latter.first IN (island.value ->> 1, (island.value ->> 2) + 1)
CROSS JOIN pruned AS former
    ON former.boot_id = latter.boot_id AND former.last = latter.first - 1
ORDER BY former.boot_id, latter.first DESC
LIMIT 1

-- name: lengthen
UPDATE pruned SET last = ?3 WHERE boot_id = ?1 AND first = ?2

-- name: drop
DELETE FROM pruned WHERE boot_id = ? AND first = ?

-- name: raise_boots
UPDATE boot
SET pruned_to = max(pruned_to, island.last)
FROM (
    SELECT value ->> 0 AS boot_id, max(value ->> 2) AS last FROM json_each(:islands) GROUP BY 1
) AS island
WHERE boot.id = island.boot_id

-- name: remember_ids
INSERT INTO pruned_id (reading_id)
SELECT reading_id FROM reading WHERE id <= :end AND n IS NULL
ON CONFLICT DO NOTHING

-- name: delete_readings
DELETE FROM reading WHERE id <= :end

-- name: ids_among
SELECT reading_id FROM pruned_id WHERE reading_id IN (SELECT value FROM json_each(?))

-- name: old_quarantine
WITH seen AS MATERIALIZED (
    SELECT id, received_at_ms FROM quarantine ORDER BY id LIMIT :rows
)
SELECT max(id) FROM seen
WHERE received_at_ms >= :sane_ms AND received_at_ms < :before_ms
    AND id < coalesce(
        (
            SELECT min(id) FROM seen
            WHERE received_at_ms >= :before_ms AND received_at_ms <= :now_ms
        ),
        9223372036854775807
    )

-- name: uncount_quarantine
UPDATE device
SET quarantined = max(0, quarantined - gone.count)
FROM (
    SELECT device, count(*) AS count FROM quarantine WHERE id <= :upto GROUP BY device
) AS gone
WHERE device.name = gone.device

-- name: delete_quarantine
DELETE FROM quarantine WHERE id <= :upto

-- name: delete_aggregates
DELETE FROM aggregate
WHERE rebuild = 0 AND (sensor_id, span_ms, from_ms) IN (
    SELECT a.sensor_id, a.span_ms, a.from_ms
    FROM sensor AS s
    CROSS JOIN aggregate AS a
        ON a.rebuild = 0 AND a.sensor_id = s.id AND a.span_ms = :span_ms
        AND a.from_ms < :before_ms
    LIMIT :rows
)

-- name: jobs_gone
-- Which of these ids no job has any more.
SELECT value AS id FROM json_each(:ids)
WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = json_each.value)

-- name: uploads_needed
SELECT json_extract(args, '$.file') AS file
FROM job INDEXED BY jobs_by_state
WHERE state IN ('pending', 'running', 'failed') AND kind = 'import_readings'
