-- name: find
SELECT
    job_id, device_id, from_ms, to_ms, calibration, reached,
    past_sensor_id, past_span_ms, past_from_ms
FROM rebuild
WHERE job_id = ?

-- name: begin
INSERT INTO rebuild (job_id, device_id, from_ms, to_ms, calibration) VALUES (?, ?, ?, ?, ?)

-- name: reach
UPDATE rebuild SET reached = max(reached, ?) WHERE job_id = ?

-- name: go_past
UPDATE rebuild SET past_sensor_id = ?, past_span_ms = ?, past_from_ms = ? WHERE job_id = ?

-- name: end
DELETE FROM rebuild WHERE job_id = ?

-- name: abandoned
-- Whose job is not to be done any more.
SELECT r.job_id FROM rebuild AS r
WHERE r.job_id <> ?
    AND NOT EXISTS (
        SELECT 1 FROM job AS j WHERE j.id = r.job_id AND j.state IN ('pending', 'running')
    )
LIMIT 1

-- name: wipe
DELETE FROM aggregate
WHERE rebuild = :job_id AND (sensor_id, span_ms, from_ms) IN (
    SELECT sensor_id, span_ms, from_ms FROM aggregate WHERE rebuild = :job_id LIMIT :rows
)

-- name: find_device
SELECT id FROM device WHERE name = ?

-- name: next_of_range
-- The first reading of the range among the next :scan arrivals.
SELECT min(id) AS id, :after + :scan AS seen
FROM reading
WHERE id > :after AND id <= min(:after + :scan, :newest)
    AND at_ms >= :from_ms AND at_ms < :to_ms
    AND (:device_id IS NULL OR device_id = :device_id)

-- name: first_arrival
SELECT coalesce(min(id), 0) AS id FROM reading

-- name: piece_end
-- The :rows th of the aggregates of the range, made anew or in place, behind the last one put in
-- place.
SELECT sensor_id, span_ms, from_ms
FROM (
    SELECT sensor_id, span_ms, from_ms
    FROM (
        SELECT sensor_id, span_ms, from_ms
        FROM aggregate
        WHERE rebuild = :job_id
            AND (sensor_id, span_ms, from_ms) > (:past_sensor_id, :past_span_ms, :past_from_ms)
        ORDER BY sensor_id, span_ms, from_ms
        LIMIT :rows
    )
    UNION
    SELECT sensor_id, span_ms, from_ms
    FROM (
        SELECT a.sensor_id, a.span_ms, a.from_ms
        FROM sensor AS s
        CROSS JOIN (SELECT 3600000 AS span_ms UNION ALL SELECT 86400000) AS spans
        CROSS JOIN aggregate AS a
            ON a.rebuild = 0 AND a.sensor_id = s.id AND a.span_ms = spans.span_ms
            AND a.from_ms >= :from_ms AND a.from_ms < :to_ms
        WHERE s.id >= :past_sensor_id AND (:device_id IS NULL OR s.device_id = :device_id)
            AND (a.sensor_id, a.span_ms, a.from_ms)
                > (:past_sensor_id, :past_span_ms, :past_from_ms)
        ORDER BY s.id, spans.span_ms, a.from_ms
        LIMIT :rows
    )
)
ORDER BY sensor_id, span_ms, from_ms
LIMIT 1 OFFSET :rows - 1

-- name: remove_old
DELETE FROM aggregate
WHERE rebuild = 0 AND (sensor_id, span_ms, from_ms) IN (
    SELECT a.sensor_id, a.span_ms, a.from_ms
    FROM sensor AS s
    CROSS JOIN (SELECT 3600000 AS span_ms UNION ALL SELECT 86400000) AS spans
    CROSS JOIN aggregate AS a
        ON a.rebuild = 0 AND a.sensor_id = s.id AND a.span_ms = spans.span_ms
        AND a.from_ms >= :from_ms AND a.from_ms < :to_ms
    WHERE s.id >= :past_sensor_id AND s.id <= :end_sensor_id
        AND (:device_id IS NULL OR s.device_id = :device_id)
        AND (a.sensor_id, a.span_ms, a.from_ms) > (:past_sensor_id, :past_span_ms, :past_from_ms)
        AND (a.sensor_id, a.span_ms, a.from_ms) <= (:end_sensor_id, :end_span_ms, :end_from_ms)
        AND a.first_arrival > :pruned_to
)

-- name: drop_unwhole
-- What was made anew of only some of the readings that the one in place was made of.
DELETE FROM aggregate
WHERE rebuild = :job_id
    AND (sensor_id, span_ms, from_ms) > (:past_sensor_id, :past_span_ms, :past_from_ms)
    AND (sensor_id, span_ms, from_ms) <= (:end_sensor_id, :end_span_ms, :end_from_ms)
    AND EXISTS (
        SELECT 1 FROM aggregate AS placed
        WHERE placed.rebuild = 0 AND placed.sensor_id = aggregate.sensor_id
            AND placed.span_ms = aggregate.span_ms AND placed.from_ms = aggregate.from_ms
            AND placed.first_arrival <= :pruned_to
    )

-- name: pruned_to
SELECT coalesce(min(id), 0) - 1 FROM reading

-- name: days_of_range
-- How many days of sensors there are, and how many of them not all readings are kept of.
SELECT count(*) AS total, count(iif(a.first_arrival <= :pruned_to, 1, NULL)) AS unwhole
FROM sensor AS s
CROSS JOIN aggregate AS a
    ON a.rebuild = 0 AND a.sensor_id = s.id AND a.span_ms = 86400000
    AND a.from_ms >= :from_ms AND a.from_ms < :to_ms
WHERE (:device_id IS NULL OR s.device_id = :device_id)

-- name: put_in_place
UPDATE aggregate SET rebuild = 0
WHERE rebuild = :job_id
    AND (sensor_id, span_ms, from_ms) > (:past_sensor_id, :past_span_ms, :past_from_ms)
    AND (sensor_id, span_ms, from_ms) <= (:end_sensor_id, :end_span_ms, :end_from_ms)
