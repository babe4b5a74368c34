-- What charts read: the readings of each sensor counted by hour and by day, in UTC.

CREATE TABLE aggregate (
    rebuild INTEGER NOT NULL DEFAULT 0,       -- 0: it counts; else the job that is making it anew
    sensor_id INTEGER NOT NULL REFERENCES sensor (id),
    span_ms INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    count INTEGER NOT NULL,                   -- of numbers, calibrated; true is 1 and false is 0
    texts INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    sum REAL,                                 -- of numbers; with them NULL: more than a REAL holds
    min REAL,
    max REAL,
    first_value REAL,                         -- of numbers: the earliest, the first to arrive of equals
    first_at_ms INTEGER,
    last_value REAL,                          -- the latest, the last to arrive of equals
    last_at_ms INTEGER,
    first_arrival INTEGER NOT NULL,           -- of all readings: where they stand in `reading`
    last_arrival INTEGER NOT NULL,
    PRIMARY KEY (rebuild, sensor_id, span_ms, from_ms),
    CONSTRAINT span_is_hour_or_day CHECK (span_ms IN (3600000, 86400000)),
    CONSTRAINT begins_with_its_span CHECK (from_ms % span_ms = 0),
    CONSTRAINT values_iff_counted CHECK (
        (count > 0) = (min IS NOT NULL) AND (count > 0) = (max IS NOT NULL)
        AND (count > 0) = (first_value IS NOT NULL) AND (count > 0) = (last_value IS NOT NULL)
    )
) STRICT, WITHOUT ROWID;

-- Up to which arrival `aggregate` has counted; moved in the transaction that counts.
CREATE TABLE aggregate_cursor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    arrival INTEGER NOT NULL
) STRICT;

INSERT INTO aggregate_cursor (id, arrival) VALUES (1, 0);

-- A job that is making the aggregates of a range anew, and how far it got.
CREATE TABLE rebuild (
    job_id INTEGER PRIMARY KEY,
    device_id INTEGER REFERENCES device (id), -- NULL: of all
    from_ms INTEGER NOT NULL,
    to_ms INTEGER NOT NULL,
    calibration TEXT NOT NULL,                -- the one it counts with
    reached INTEGER NOT NULL DEFAULT 0,       -- arrivals up to here are counted
    past_sensor_id INTEGER NOT NULL DEFAULT 0, -- the last aggregate that was put in place
    past_span_ms INTEGER NOT NULL DEFAULT 0,
    past_from_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE VIEW aggregates AS
SELECT
    d.name AS device, s.name AS sensor, a.span_ms, a.from_ms, a.count, a.texts, a.errors, a.sum,
    a.min, a.max, a.first_value, a.first_at_ms, a.last_value, a.last_at_ms
FROM aggregate AS a
JOIN sensor AS s ON s.id = a.sensor_id
JOIN device AS d ON d.id = s.device_id
WHERE a.rebuild = 0;
