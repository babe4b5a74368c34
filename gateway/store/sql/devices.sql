-- name: register
INSERT INTO device (name, generation, added_at_ms) VALUES (?, 1, ?)
ON CONFLICT (name) DO UPDATE SET generation = coalesce(generation, 1)

-- name: generation
SELECT generation FROM device WHERE name = :name
