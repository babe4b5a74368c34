-- What is counted when the metrics are asked for; each looks at a bounded number of rows.

-- name: alarms_open
SELECT kind, count(*) AS count
FROM (SELECT kind FROM alarm WHERE closed_at_ms IS NULL LIMIT :scan)
GROUP BY kind
