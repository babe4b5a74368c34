-- Readings and the books that are kept with them, in one transaction.

CREATE TABLE device (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER,                       -- of its key; NULL: no key was ever made for it
    added_at_ms INTEGER NOT NULL,
    last_seen_at_ms INTEGER,
    boot TEXT,                                -- the present one
    seq INTEGER,                              -- of the newest attempt of the present boot
    health TEXT,                              -- JSON, as the device said it last
    crash TEXT,                               -- the last one it told of
    crash_at_ms INTEGER,
    stored INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    quarantined INTEGER NOT NULL DEFAULT 0,
    ignored INTEGER NOT NULL DEFAULT 0        -- malformed optional parts and unknown fields
) STRICT;

CREATE TABLE sensor (
    id INTEGER PRIMARY KEY,
    device_id INTEGER NOT NULL REFERENCES device (id),
    name TEXT NOT NULL,
    UNIQUE (device_id, name)
) STRICT;

-- One power-on of one device: how far its numbers got.
CREATE TABLE boot (
    id INTEGER PRIMARY KEY,
    device_id INTEGER NOT NULL REFERENCES device (id),
    name TEXT NOT NULL,
    highest INTEGER NOT NULL,                 -- the highest n that arrived
    pruned_to INTEGER NOT NULL DEFAULT 0,     -- the highest n that retention took away
    first_seen_at_ms INTEGER NOT NULL,
    UNIQUE (device_id, name)
) STRICT;

-- Numbers below a boot's highest that have not arrived.
CREATE TABLE gap (
    boot_id INTEGER NOT NULL REFERENCES boot (id),
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    opened_at_ms INTEGER NOT NULL,
    PRIMARY KEY (boot_id, first),
    CONSTRAINT range_is_not_empty CHECK (first <= last)
) STRICT, WITHOUT ROWID;

-- Numbers that the device itself says will never come.
CREATE TABLE lost (
    boot_id INTEGER NOT NULL REFERENCES boot (id),
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    reported_at_ms INTEGER NOT NULL,
    PRIMARY KEY (boot_id, first),
    CONSTRAINT range_is_not_empty CHECK (first <= last)
) STRICT, WITHOUT ROWID;

CREATE TABLE reading (
    id INTEGER PRIMARY KEY,                   -- order of arrival
    reading_id TEXT NOT NULL UNIQUE,
    device_id INTEGER NOT NULL REFERENCES device (id),
    sensor_id INTEGER NOT NULL REFERENCES sensor (id),
    value REAL,
    text TEXT,
    unit TEXT,
    error TEXT,
    boot_id INTEGER REFERENCES boot (id),     -- with n: NULL where the id is not in the grammar
    n INTEGER,
    at_ms INTEGER NOT NULL,
    clock TEXT NOT NULL,
    sent_at_ms INTEGER,                       -- what was sent, where at_ms was corrected
    received_at_ms INTEGER NOT NULL,
    CONSTRAINT exactly_one_content CHECK ((value IS NOT NULL) + (text IS NOT NULL) + (error IS NOT NULL) = 1),
    CONSTRAINT clock_is_known CHECK (clock IN ('synced', 'corrected', 'estimated', 'none'))
) STRICT;

CREATE INDEX reading_by_device ON reading (device_id);

-- What could not be stored, as it was sent. A resent one is kept once.
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,              -- of device, reason and body
    reading_id TEXT,
    device TEXT NOT NULL,
    reason TEXT NOT NULL,
    body TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL
) STRICT;

-- What is true and a person should know: one open row for each (kind, subject).
CREATE TABLE alarm (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    opened_at_ms INTEGER NOT NULL,
    closed_at_ms INTEGER
) STRICT;

CREATE UNIQUE INDEX alarm_open ON alarm (kind, subject) WHERE closed_at_ms IS NULL;

CREATE VIEW readings AS
SELECT
    r.reading_id, d.name AS device, s.name AS sensor, r.value, r.text, r.unit, r.error,
    b.name AS boot, r.n, r.at_ms, r.clock, r.received_at_ms
FROM reading AS r
JOIN device AS d ON d.id = r.device_id
JOIN sensor AS s ON s.id = r.sensor_id
LEFT JOIN boot AS b ON b.id = r.boot_id;
