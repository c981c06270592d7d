-- A controller that stands down for a drill (`cronring drill`) says so, and until when. The release before knows nothing
-- of it, and needs not: its renewals leave the column alone.
ALTER TABLE controllers ADD COLUMN stands_down_until timestamptz;
-- works with: 12
