-- oldest server: 0.1.0

-- Who closed an occurrence. The version before neither reads nor writes it.
ALTER TABLE "occurrences" ADD COLUMN "closed_by" smallint;
