-- name: present
SELECT boot, seq FROM device WHERE name = :device

-- name: has_boot
SELECT 1
FROM device AS d
JOIN boot AS b ON b.device_id = d.id AND b.name = :boot
WHERE d.name = :device

-- name: devices
SELECT
    EXISTS (SELECT 1 FROM device WHERE name = :device) AS is_known,
    (SELECT count(*) FROM device) AS count

-- name: sensors
SELECT s.name
FROM device AS d
JOIN sensor AS s ON s.device_id = d.id
WHERE d.name = :device
