-- name: pin
-- Begins the snapshot that is copied: while it is held, what others write does not change it.
SELECT count(*) FROM (SELECT 1 FROM sqlite_schema LIMIT 1)

-- name: has_facts
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'fact')
