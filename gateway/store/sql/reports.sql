-- name: readings_of_device
SELECT r.id, r.sensor_id, r.at_ms, r.value, r.text, r.error, r.unit
FROM reading AS r
WHERE r.device_id = :device_id AND r.id > :after AND r.id <= :end
ORDER BY r.id
LIMIT :rows

-- name: devices
SELECT d.id, d.name, d.added_at_ms FROM device AS d WHERE d.name > :after ORDER BY d.name LIMIT :rows

-- name: sensors_of_device
-- Its sensors, and where in the order of arrival the readings of the day are that are counted.
SELECT
    s.id, s.name, min(a.first_arrival) AS first_arrival, max(a.last_arrival) AS last_arrival
FROM sensor AS s
LEFT JOIN aggregate AS a
    ON a.rebuild = 0 AND a.sensor_id = s.id AND a.span_ms = 3600000
    AND a.from_ms > :from_ms - 3600000 AND a.from_ms < :to_ms
WHERE s.device_id = :device_id
GROUP BY s.id
ORDER BY s.name

-- name: count_devices
SELECT count(*) AS count FROM device

-- name: newest
SELECT coalesce(max(id), 0) AS id FROM reading

-- name: missing
-- Numbers of the device that were found missing that day and have not come since.
SELECT coalesce(sum(g.last - g.first + 1), 0) AS missing
FROM boot AS b
JOIN gap AS g ON g.boot_id = b.id
WHERE b.device_id = :device_id AND g.opened_at_ms >= :from_ms AND g.opened_at_ms < :to_ms
