-- oldest server: 0.1.0

ALTER TABLE "credentials" ADD COLUMN "allowed_hosts" jsonb;