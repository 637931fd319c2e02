-- oldest server: 0.1.0

ALTER TABLE "feed" ADD COLUMN "earlier" "bytea";