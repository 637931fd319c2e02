-- oldest server: 0.1.0

-- When it was last reported that an open occurrence goes on, by a report that is no instance of it.
ALTER TABLE "occurrences" ADD COLUMN "kept_open_ms" bigint;
