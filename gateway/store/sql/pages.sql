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
    EXISTS (
        SELECT 1 FROM alarm INDEXED BY alarm_open
        WHERE kind = 'device_silent' AND subject = d.name AND closed_at_ms IS NULL
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
    (
        SELECT count(*)
        FROM (
            SELECT 1 FROM alarm INDEXED BY alarm_open
            WHERE kind = 'device_silent' AND closed_at_ms IS NULL
            LIMIT :scan
        )
    ) AS silent,
    coalesce(sum(stored), 0) AS stored,
    coalesce(sum(duplicates), 0) AS duplicates,
    coalesce(sum(quarantined), 0) AS quarantined
FROM (SELECT last_seen_at_ms, stored, duplicates, quarantined FROM device LIMIT :scan);

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

-- name: devices_of_page
-- Silent ones first, then those with an open alarm, then those that miss readings.
SELECT
    d.id, d.name, d.added_at_ms, d.last_seen_at_ms, d.boot, d.health, d.crash, d.crash_at_ms,
    d.stored, d.duplicates, d.quarantined, d.has_key, d.interval_ms,
    EXISTS (
        SELECT 1 FROM alarm INDEXED BY alarm_open
        WHERE kind = 'device_silent' AND subject = d.name AND closed_at_ms IS NULL
    ) AS silent,
    d.name IN (
        SELECT subject FROM (SELECT subject FROM alarm WHERE closed_at_ms IS NULL LIMIT :scan)
    ) AS alarmed,
    d.id IN (
        SELECT b.device_id
        FROM (SELECT DISTINCT boot_id FROM gap LIMIT :scan) AS g
        CROSS JOIN boot AS b ON b.id = g.boot_id
    ) AS gapped
FROM (
    SELECT
        d.id, d.name, d.added_at_ms, d.last_seen_at_ms, d.boot, d.health, d.crash, d.crash_at_ms,
        d.stored, d.duplicates, d.quarantined, d.generation IS NOT NULL AS has_key,
        coalesce(
            (SELECT value FROM json_each(:configured) WHERE key = d.name),
            CASE
                WHEN json_extract(d.health, '$.period_ms') IS NULL AND w.interval_ms IS NOT NULL
                THEN min(max(w.interval_ms, :shortest_ms), :longest_learned_ms)
                ELSE min(
                    max(coalesce(json_extract(d.health, '$.period_ms'), :heartbeat_ms), :shortest_ms),
                    :heartbeat_ms
                )
            END
        ) AS interval_ms
    FROM device AS d
    LEFT JOIN device_watch AS w ON w.device_id = d.id
    LIMIT :scan
) AS d
ORDER BY silent DESC, alarmed DESC, gapped DESC, d.name
LIMIT :limit OFFSET :offset;

-- name: device_of_page
SELECT
    d.id, d.name, d.added_at_ms, d.last_seen_at_ms, d.boot, d.health, d.crash, d.crash_at_ms,
    d.stored, d.duplicates, d.quarantined, d.has_key, d.interval_ms,
    EXISTS (
        SELECT 1 FROM alarm INDEXED BY alarm_open
        WHERE kind = 'device_silent' AND subject = d.name AND closed_at_ms IS NULL
    ) AS silent
FROM (
    SELECT
        d.id, d.name, d.added_at_ms, d.last_seen_at_ms, d.boot, d.health, d.crash, d.crash_at_ms,
        d.stored, d.duplicates, d.quarantined, d.generation IS NOT NULL AS has_key,
        coalesce(
            (SELECT value FROM json_each(:configured) WHERE key = d.name),
            CASE
                WHEN json_extract(d.health, '$.period_ms') IS NULL AND w.interval_ms IS NOT NULL
                THEN min(max(w.interval_ms, :shortest_ms), :longest_learned_ms)
                ELSE min(
                    max(coalesce(json_extract(d.health, '$.period_ms'), :heartbeat_ms), :shortest_ms),
                    :heartbeat_ms
                )
            END
        ) AS interval_ms
    FROM device AS d
    LEFT JOIN device_watch AS w ON w.device_id = d.id
    WHERE d.name = :name
) AS d;

-- name: boots_of_page
SELECT device_id, count(*) AS boots
FROM (
    SELECT b.device_id
    FROM json_each(:ids) AS wanted
    CROSS JOIN boot AS b ON b.device_id = wanted.value
    LIMIT :scan
)
GROUP BY device_id;

-- name: gaps_of_page
SELECT device_id, boot, first, last, missing
FROM (
    SELECT
        device_id, boot, first, last,
        sum(last - first + 1) OVER (PARTITION BY device_id) AS missing,
        row_number() OVER (PARTITION BY device_id ORDER BY boot_id DESC, first DESC) AS place
    FROM (
        SELECT b.device_id, b.id AS boot_id, b.name AS boot, g.first, g.last
        FROM json_each(:ids) AS wanted
        CROSS JOIN boot AS b ON b.device_id = wanted.value
        CROSS JOIN gap AS g ON g.boot_id = b.id
        LIMIT :scan
    )
)
WHERE place <= :limit
ORDER BY device_id, place;

-- name: lost_of_page
SELECT device_id, sum(last - first + 1) AS lost
FROM (
    SELECT b.device_id, l.first, l.last
    FROM json_each(:ids) AS wanted
    CROSS JOIN boot AS b ON b.device_id = wanted.value
    CROSS JOIN lost AS l ON l.boot_id = b.id
    LIMIT :scan
)
GROUP BY device_id;

-- name: sensors_of_page
-- The first sensors of each of these devices.
SELECT s.device_id, s.id, s.name
FROM json_each(:ids) AS wanted
CROSS JOIN sensor AS s ON s.id IN (
    SELECT id FROM sensor WHERE device_id = wanted.value ORDER BY name LIMIT :limit
)
ORDER BY s.device_id, s.name;

-- name: sensor
SELECT s.id, s.name, d.name AS device
FROM sensor AS s
CROSS JOIN device AS d ON d.id = s.device_id
WHERE s.id = :id;

-- name: spans_of_sensors
-- Hours or days of each of these sensors, those that hold a number.
SELECT
    a.sensor_id, a.from_ms, a.count, a.sum / a.count AS mean, a.min, a.max, a.last_value,
    a.last_at_ms, a.last_arrival
FROM json_each(:ids) AS wanted
CROSS JOIN aggregate AS a
    ON a.rebuild = 0 AND a.sensor_id = wanted.value AND a.span_ms = :span_ms
    AND a.from_ms >= :from_ms AND a.from_ms < :to_ms
WHERE a.count > 0
ORDER BY a.sensor_id, a.from_ms
LIMIT :limit;

-- name: units
SELECT id, unit FROM reading WHERE id IN (SELECT value FROM json_each(:arrivals));

-- name: newest_readings_of_device
SELECT
    r.id AS arrival, r.reading_id, s.name AS sensor, r.value, r.text, r.unit, r.error, r.at_ms,
    r.clock, r.received_at_ms
FROM (SELECT id FROM reading WHERE device_id = :device_id ORDER BY id DESC LIMIT :limit) AS newest
CROSS JOIN reading AS r ON r.id = newest.id
CROSS JOIN sensor AS s ON s.id = r.sensor_id
ORDER BY r.id DESC;

-- name: quarantine_of_device
SELECT reading_id, reason, body, received_at_ms
FROM quarantine
WHERE device = :device
ORDER BY id DESC
LIMIT :limit;

-- name: jobs_running
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, run_at_ms,
    created_at_ms, started_at_ms, finished_at_ms, result, worker, lease_until_ms
FROM job INDEXED BY jobs_for_rescue
WHERE state = 'running'
ORDER BY lease_until_ms
LIMIT :limit;

-- name: jobs_due
-- In the order in which they will be taken.
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, run_at_ms,
    created_at_ms, started_at_ms, finished_at_ms, result, worker, lease_until_ms
FROM job INDEXED BY jobs_for_claim
WHERE state = 'pending'
ORDER BY priority DESC, run_at_ms, id
LIMIT :limit;

-- name: jobs_of_state
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, run_at_ms,
    created_at_ms, started_at_ms, finished_at_ms, result, worker, lease_until_ms
FROM job INDEXED BY jobs_by_state
WHERE state = :state AND id < :before
ORDER BY id DESC
LIMIT :limit;

-- name: jobs_newest
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, run_at_ms,
    created_at_ms, started_at_ms, finished_at_ms, result, worker, lease_until_ms
FROM job
WHERE id < :before
ORDER BY id DESC
LIMIT :limit;

-- name: job_of_page
SELECT
    id, kind, args, state, progress, stage, error, attempts, crashes, cancel_requested, run_at_ms,
    created_at_ms, started_at_ms, finished_at_ms, result, worker, lease_until_ms, request_id,
    priority
FROM job
WHERE id = :id;

-- name: moves_since
-- How often each move was made, among the newest :scan moves of all.
SELECT verb, state, count(*) AS count, min(at_ms) AS oldest_ms
FROM (SELECT verb, state, at_ms FROM job_event ORDER BY id DESC LIMIT :scan)
WHERE at_ms >= :since_ms
GROUP BY verb, state;

-- name: times_since
-- How long the jobs of each kind took that ended lately, among the newest :scan of them.
SELECT
    kind, count(*) AS count, sum(state = 'failed') AS failed,
    avg(finished_at_ms - created_at_ms) AS response_ms,
    max(finished_at_ms - created_at_ms) AS longest_response_ms,
    avg(finished_at_ms - started_at_ms) AS work_ms,
    max(finished_at_ms - started_at_ms) AS longest_work_ms
FROM (
    SELECT kind, state, created_at_ms, started_at_ms, finished_at_ms
    FROM job INDEXED BY jobs_for_prune
    WHERE finished_at_ms IS NOT NULL AND finished_at_ms >= :since_ms
    ORDER BY finished_at_ms DESC
    LIMIT :scan
)
WHERE state IN ('done', 'failed')
GROUP BY kind
ORDER BY kind
LIMIT :kinds;
