-- name: add_link
INSERT INTO login_link (sha256, until_ms) VALUES (?, ?)

-- name: use_link
DELETE FROM login_link WHERE sha256 = ? AND until_ms > ?

-- name: find_link
SELECT until_ms FROM login_link WHERE sha256 = :sha256

-- name: prune_links
DELETE FROM login_link WHERE until_ms <= ?

-- name: open
INSERT INTO session (sha256, opened_at_ms, until_ms) VALUES (?, ?, ?)

-- name: find
SELECT until_ms FROM session WHERE sha256 = :sha256

-- name: close
DELETE FROM session WHERE sha256 = ?

-- name: prune
DELETE FROM session WHERE until_ms <= ?

-- name: close_all
DELETE FROM session

-- name: drop_links
DELETE FROM login_link
