-- name: newest
SELECT coalesce(max(id), 0) FROM quarantine

-- name: next_held
SELECT id, device, reason, body, received_at_ms
FROM quarantine
WHERE id > :after AND id <= :newest AND (:device IS NULL OR device = :device)
ORDER BY id
LIMIT :rows

-- name: release
DELETE FROM quarantine WHERE id IN (SELECT value FROM json_each(?))

-- name: uncount
UPDATE device SET quarantined = max(0, quarantined - gone.value)
FROM json_each(?) AS gone
WHERE device.name = gone.key
