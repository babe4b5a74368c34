-- A generation is made once: one that was revoked never comes again.
-- name: register
INSERT INTO device (name, generation, spent_generation, added_at_ms) VALUES (?, 1, 1, ?)
ON CONFLICT (name) DO UPDATE
SET
    generation = coalesce(generation, spent_generation + 1),
    spent_generation = coalesce(max(generation, spent_generation), spent_generation + 1)

-- name: identity
SELECT generation, next_generation, may_ask FROM device WHERE name = :name

-- name: rotate
UPDATE device
SET next_generation = spent_generation + 1, spent_generation = spent_generation + 1
WHERE name = ? AND generation IS NOT NULL
RETURNING next_generation

-- name: take_up
UPDATE device SET generation = next_generation, next_generation = NULL
WHERE name = ? AND next_generation = ?

-- name: revoke
UPDATE device
SET generation = NULL, next_generation = NULL, bearer_sha256 = NULL, may_ask = 0
WHERE name = ? AND (generation IS NOT NULL OR bearer_sha256 IS NOT NULL)

-- name: give_bearer
INSERT INTO device (name, bearer_sha256, added_at_ms) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET bearer_sha256 = excluded.bearer_sha256

-- name: revoke_bearer
UPDATE device SET bearer_sha256 = NULL WHERE name = ? AND bearer_sha256 IS NOT NULL

-- name: find_bearer
SELECT name, may_ask FROM device WHERE bearer_sha256 = :sha256

-- name: let_ask
UPDATE device SET may_ask = ? WHERE name = ?

-- name: list_all
SELECT
    name, generation, added_at_ms, last_seen_at_ms, next_generation,
    bearer_sha256 IS NOT NULL AS has_bearer, may_ask
FROM device
ORDER BY name

-- name: count_keyed
SELECT count(*) AS keyed FROM device WHERE generation IS NOT NULL

-- What a damaged database tells of who could speak, the revoked too, and how it is taken up again:
-- one value as JSON, so that whoever carries it over need not know what it holds.
-- name: keyed
SELECT
    name,
    json_array(generation, next_generation, spent_generation, bearer_sha256, may_ask) AS identity
FROM device
WHERE spent_generation > 0 OR bearer_sha256 IS NOT NULL

-- name: register_again
INSERT INTO device (
    name, generation, next_generation, spent_generation, bearer_sha256, may_ask, added_at_ms
)
VALUES (?1, ?2 ->> 0, ?2 ->> 1, ?2 ->> 2, ?2 ->> 3, ?2 ->> 4, ?3)
ON CONFLICT (name) DO NOTHING
