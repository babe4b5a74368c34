-- Alarms that happen again, are acknowledged and told of; and what their rules remember.

ALTER TABLE alarm ADD COLUMN last_at_ms INTEGER;          -- when what it tells of happened last
ALTER TABLE alarm ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
ALTER TABLE alarm ADD COLUMN mark TEXT;                   -- what its rule saw when it opened it
ALTER TABLE alarm ADD COLUMN closed_by TEXT;              -- NULL: it closed by itself
ALTER TABLE alarm ADD COLUMN acknowledged_at_ms INTEGER;
ALTER TABLE alarm ADD COLUMN acknowledged_by TEXT;
ALTER TABLE alarm ADD COLUMN note TEXT;                   -- of whoever acknowledged it
ALTER TABLE alarm ADD COLUMN told_at_ms INTEGER;          -- when mail or webhook was asked for

UPDATE alarm SET last_at_ms = opened_at_ms;

CREATE INDEX alarms_told ON alarm (kind, subject, told_at_ms) WHERE told_at_ms IS NOT NULL;
CREATE INDEX alarms_for_prune ON alarm (closed_at_ms) WHERE closed_at_ms IS NOT NULL;
CREATE INDEX failed_jobs_by_kind ON job (kind, id) WHERE state = 'failed';

-- What was seen of a device; a row is written when it is heard for the first time, loses readings
-- or starts under another nonce.
CREATE TABLE device_watch (
    device_id INTEGER PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    dropped INTEGER NOT NULL DEFAULT 0,                   -- as it reported it last
    nonces TEXT NOT NULL DEFAULT '',                      -- of its last present boots, in order
    interval_ms INTEGER                                   -- learned, where it tells no period
) STRICT;

-- What was dropped and has failed before there was anybody to watch.
INSERT INTO device_watch (device_id, dropped)
SELECT id, coalesce(json_extract(health, '$.dropped'), 0) FROM device;

INSERT INTO alarm (kind, subject, detail, opened_at_ms, last_at_ms)
SELECT 'job_failed', kind, 'job ' || max(id) || ' failed', max(finished_at_ms), max(finished_at_ms)
FROM job
WHERE state = 'failed'
GROUP BY kind
ON CONFLICT (kind, subject) WHERE closed_at_ms IS NULL DO NOTHING;

-- Conflicts are rare: the way in of the readings knows nothing of this, and pays for those alone.
CREATE TRIGGER conflict_alarm AFTER INSERT ON quarantine
WHEN NEW.reason = 'id was used before for another reading'
BEGIN
    INSERT INTO alarm (kind, subject, detail, opened_at_ms, last_at_ms)
    VALUES (
        'conflict', NEW.device,
        'the id ' || coalesce(NEW.reading_id, '') || ' came again with another content',
        NEW.received_at_ms, NEW.received_at_ms
    )
    ON CONFLICT (kind, subject) WHERE closed_at_ms IS NULL
    DO UPDATE SET
        times = times + 1, detail = excluded.detail,
        last_at_ms = max(coalesce(last_at_ms, 0), excluded.last_at_ms);
END;
