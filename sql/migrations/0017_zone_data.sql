-- Which zone data (the tzdata package's version) controllers reckon by. Members may differ for a while, and a new version
-- may have other rules for an instant that is past: then the books are right, and whoever recomputes them sees another
-- tick. The release before says nothing of its own.
ALTER TABLE controllers ADD COLUMN zone_data text NOT NULL DEFAULT '';

CREATE TABLE cron_zone_data ( -- every version that ever decided a tick here
    version text PRIMARY KEY,
    first_used_at timestamptz NOT NULL DEFAULT now()
);
-- works with: 16
