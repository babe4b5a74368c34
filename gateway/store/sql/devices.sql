-- name: register
INSERT INTO device (name, generation, added_at_ms) VALUES (?, 1, ?)
ON CONFLICT (name) DO UPDATE SET generation = coalesce(generation, 1)

-- name: generation
SELECT generation FROM device WHERE name = :name

-- name: list_all
SELECT name, generation, added_at_ms, last_seen_at_ms FROM device ORDER BY name

-- name: count_keyed
SELECT count(*) AS keyed FROM device WHERE generation IS NOT NULL

-- name: keyed
SELECT name, generation FROM device WHERE generation IS NOT NULL

-- name: register_again
INSERT INTO device (name, generation, added_at_ms) VALUES (?, ?, ?)
ON CONFLICT (name) DO NOTHING
