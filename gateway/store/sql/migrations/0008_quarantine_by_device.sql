-- The page of a device shows what of it is in quarantine. A row there is rare, so is the cost.

CREATE INDEX quarantine_by_device ON quarantine (device);
