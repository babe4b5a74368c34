-- name: since
SELECT since_ms FROM schedule
WHERE name = :name AND rule = :rule AND since_ms <= :now_ms

-- name: begin
INSERT INTO schedule (name, rule, since_ms) VALUES (:name, :rule, :now_ms)
ON CONFLICT (name) DO UPDATE SET rule = :rule, since_ms = :now_ms

-- name: taken
SELECT 1 FROM slot
WHERE schedule = :name AND slot_ms BETWEEN :slot_ms AND :now_ms
LIMIT 1

-- name: take
INSERT INTO slot (schedule, slot_ms, job_id) VALUES (:name, :slot_ms, :job_id)

-- name: prune
DELETE FROM slot
WHERE
    schedule = :name
    AND job_id <= (
        SELECT job_id FROM slot
        WHERE schedule = :name
        ORDER BY job_id DESC
        LIMIT 1 OFFSET :keep
    )

-- name: forget_others
DELETE FROM schedule WHERE name NOT IN (SELECT value FROM json_each(:names))
