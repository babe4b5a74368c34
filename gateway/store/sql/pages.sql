-- What the pages and the reading half of the API ask. Each looks at a bounded number of rows.

-- name: scan_end
SELECT max(id) AS id
FROM (SELECT id FROM reading WHERE id > :after ORDER BY id LIMIT :scan);

-- name: scan_end_of_device
SELECT max(id) AS id
FROM (
    SELECT id FROM reading
    WHERE device_id = (SELECT id FROM device WHERE name = :device) AND id > :after
    ORDER BY id LIMIT :scan
);

-- name: readings_between
SELECT
    r.id AS arrival, r.reading_id, d.name AS device, s.name AS sensor, r.value, r.text, r.unit,
    r.error, b.name AS boot, r.n, r.at_ms, r.clock, r.received_at_ms
FROM reading AS r
CROSS JOIN device AS d ON d.id = r.device_id
CROSS JOIN sensor AS s ON s.id = r.sensor_id
LEFT JOIN boot AS b ON b.id = r.boot_id
WHERE r.id > :after AND r.id <= :end
    AND (:sensor IS NULL OR s.name = :sensor)
    AND r.at_ms >= :from_ms AND r.at_ms < :to_ms
ORDER BY r.id
LIMIT :limit;

-- name: readings_of_device_between
SELECT
    r.id AS arrival, r.reading_id, d.name AS device, s.name AS sensor, r.value, r.text, r.unit,
    r.error, b.name AS boot, r.n, r.at_ms, r.clock, r.received_at_ms
FROM device AS d
CROSS JOIN reading AS r ON r.device_id = d.id
CROSS JOIN sensor AS s ON s.id = r.sensor_id
LEFT JOIN boot AS b ON b.id = r.boot_id
WHERE d.name = :device AND r.id > :after AND r.id <= :end
    AND (:sensor IS NULL OR s.name = :sensor)
    AND r.at_ms >= :from_ms AND r.at_ms < :to_ms
ORDER BY r.id
LIMIT :limit;

-- name: newest_arrival
SELECT max(id) AS id FROM reading;

-- name: newest_readings
SELECT
    r.id AS arrival, r.reading_id, d.name AS device, s.name AS sensor, r.value, r.text, r.unit,
    r.error, r.at_ms, r.clock, r.received_at_ms
FROM reading AS r
CROSS JOIN device AS d ON d.id = r.device_id
CROSS JOIN sensor AS s ON s.id = r.sensor_id
ORDER BY r.id DESC
LIMIT :limit;

-- name: devices
SELECT
    d.name, d.added_at_ms, d.last_seen_at_ms, d.boot, d.health, d.crash, d.crash_at_ms,
    d.stored, d.duplicates, d.quarantined, d.ignored, d.generation IS NOT NULL AS has_key,
    d.last_seen_at_ms < :now_ms - :missed * min(
        max(coalesce(json_extract(d.health, '$.period_ms'), :longest_ms), :shortest_ms), :longest_ms
    ) AS silent,
    (SELECT count(*) FROM boot AS b WHERE b.device_id = d.id) AS boots
FROM device AS d
WHERE d.name > :after
ORDER BY d.name
LIMIT :limit;

-- name: device_counts
SELECT
    count(*) AS total,
    count(last_seen_at_ms) AS seen,
    coalesce(sum(last_seen_at_ms < :now_ms - :missed * min(
        max(coalesce(json_extract(health, '$.period_ms'), :longest_ms), :shortest_ms), :longest_ms
    )), 0) AS silent,
    coalesce(sum(stored), 0) AS stored,
    coalesce(sum(duplicates), 0) AS duplicates,
    coalesce(sum(quarantined), 0) AS quarantined
FROM (
    SELECT last_seen_at_ms, health, stored, duplicates, quarantined FROM device LIMIT :scan
);

-- name: gaps_of_devices
SELECT device, boot, first, last, missing
FROM (
    SELECT
        device, boot, first, last,
        sum(last - first + 1) OVER (PARTITION BY device) AS missing,
        row_number() OVER (PARTITION BY device ORDER BY boot_id DESC, first DESC) AS place
    FROM (
        SELECT d.name AS device, b.id AS boot_id, b.name AS boot, g.first, g.last
        FROM device AS d
        JOIN boot AS b ON b.device_id = d.id
        JOIN gap AS g ON g.boot_id = b.id
        WHERE d.name BETWEEN :first AND :last
        LIMIT :scan
    )
)
WHERE place <= :limit
ORDER BY device, place;

-- name: lost_of_devices
SELECT device, sum(last - first + 1) AS lost
FROM (
    SELECT d.name AS device, l.first, l.last
    FROM device AS d
    JOIN boot AS b ON b.device_id = d.id
    JOIN lost AS l ON l.boot_id = b.id
    WHERE d.name BETWEEN :first AND :last
    LIMIT :scan
)
GROUP BY device;

-- name: missing
SELECT coalesce(sum(last - first + 1), 0) AS missing FROM (SELECT first, last FROM gap LIMIT :scan);

-- name: write_probe
PRAGMA application_id = 1179668307;
