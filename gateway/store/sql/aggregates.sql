-- name: cursor
SELECT arrival FROM aggregate_cursor WHERE id = 1

-- name: has_news
SELECT EXISTS (
    SELECT 1 FROM reading WHERE id > (SELECT arrival FROM aggregate_cursor WHERE id = 1)
) AS has_news

-- name: newest
SELECT max(id) FROM reading

-- name: step
-- Where a step begins and ends that counts :rows rows, none beyond :newest; its arrivals lie within
-- 2^20, for the sake of `fold`.
SELECT min(id) - 1, max(id) FROM (
    SELECT id FROM reading
    WHERE id > :after AND id <= :newest
        AND id <= (SELECT min(id) + 1048575 FROM reading WHERE id > :after)
    ORDER BY id
    LIMIT :rows
)

-- name: move_cursor
UPDATE aggregate_cursor SET arrival = ? WHERE id = 1

-- name: fold
-- Readings in order of arrival, (:after, :upto], join their hours and days.
-- The earliest and the latest are found by one number that orders by instant and then by arrival:
-- 42 bits of at_ms, 21 of what the arrival is beyond :after. Windows took three times as long.
-- The bounds keep a calibrated value finite: of infinite ones a sum may be no number.
WITH calibration AS MATERIALIZED (
    SELECT s.id AS sensor_id, given.value ->> 2 AS scale, given.value ->> 3 AS shift
    FROM json_each(:calibration) AS given
    JOIN device AS d ON d.name = given.value ->> 0
    JOIN sensor AS s ON s.device_id = d.id AND s.name = given.value ->> 1
),
fresh AS (
    SELECT
        r.id, r.sensor_id, r.at_ms - r.at_ms % 3600000 AS hour_ms, r.text, r.error,
        iif(r.value IS NULL, NULL, r.at_ms * 2097152 + r.id - :after) AS place,
        max(-1.7976931348623157e308, min(1.7976931348623157e308,
            r.value * coalesce(c.scale, 1.0) + coalesce(c.shift, 0.0))) AS value
    FROM reading AS r
    LEFT JOIN calibration AS c ON c.sensor_id = r.sensor_id
    WHERE r.id > :after AND r.id <= :upto
        AND r.at_ms >= :from_ms AND r.at_ms < :to_ms
        AND (:device_id IS NULL OR r.device_id = :device_id)
),
hours AS MATERIALIZED (
    SELECT
        sensor_id, hour_ms, count(value) AS count, count(text) AS texts, count(error) AS errors,
        sum(value) AS sum, min(value) AS min, max(value) AS max,
        min(place) AS first, max(place) AS last, min(id) AS first_arrival, max(id) AS last_arrival
    FROM fresh
    GROUP BY sensor_id, hour_ms
),
spans (span_ms) AS (VALUES (3600000), (86400000)),
pieces AS (
    SELECT
        sensor_id, span_ms, hour_ms - hour_ms % span_ms AS from_ms, sum(count) AS count,
        sum(texts) AS texts, sum(errors) AS errors, sum(sum) AS sum, min(min) AS min,
        max(max) AS max, min(first) AS first, max(last) AS last,
        min(first_arrival) AS first_arrival, max(last_arrival) AS last_arrival
    FROM hours
    CROSS JOIN spans
    GROUP BY 1, 2, 3
)
INSERT INTO aggregate (
    rebuild, sensor_id, span_ms, from_ms, count, texts, errors, sum, min, max,
    first_value, first_at_ms, last_value, last_at_ms, first_arrival, last_arrival
)
SELECT
    :rebuild, p.sensor_id, p.span_ms, p.from_ms, p.count, p.texts, p.errors, p.sum, p.min, p.max,
    max(-1.7976931348623157e308, min(1.7976931348623157e308,
        first.value * coalesce(c.scale, 1.0) + coalesce(c.shift, 0.0))),
    first.at_ms,
    max(-1.7976931348623157e308, min(1.7976931348623157e308,
        last.value * coalesce(c.scale, 1.0) + coalesce(c.shift, 0.0))),
    last.at_ms, p.first_arrival, p.last_arrival
FROM pieces AS p
LEFT JOIN reading AS first ON first.id = :after + p.first % 2097152
LEFT JOIN reading AS last ON last.id = :after + p.last % 2097152
LEFT JOIN calibration AS c ON c.sensor_id = p.sensor_id
WHERE (p.sensor_id, p.span_ms, p.from_ms) > (:past_sensor_id, :past_span_ms, :past_from_ms)
ON CONFLICT (rebuild, sensor_id, span_ms, from_ms) DO UPDATE SET
    count = count + excluded.count,
    texts = texts + excluded.texts,
    errors = errors + excluded.errors,
    sum = CASE
        WHEN count = 0 THEN excluded.sum
        WHEN excluded.count = 0 THEN sum
        ELSE sum + excluded.sum
    END,
    min = coalesce(min(min, excluded.min), min, excluded.min),
    max = coalesce(max(max, excluded.max), max, excluded.max),
    first_value = CASE
        WHEN excluded.first_at_ms < coalesce(first_at_ms, 9223372036854775807)
        THEN excluded.first_value ELSE first_value
    END,
    first_at_ms = coalesce(min(first_at_ms, excluded.first_at_ms), first_at_ms, excluded.first_at_ms),
    last_value = CASE
        WHEN excluded.last_at_ms >= coalesce(last_at_ms, 0)
        THEN excluded.last_value ELSE last_value
    END,
    last_at_ms = coalesce(max(last_at_ms, excluded.last_at_ms), last_at_ms, excluded.last_at_ms),
    first_arrival = min(first_arrival, excluded.first_arrival),
    last_arrival = max(last_arrival, excluded.last_arrival)
