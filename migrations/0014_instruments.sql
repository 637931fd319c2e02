-- oldest server: 0.1.0

-- What kind of instrument a series is read from: its type and temporality, where senders name them. Empty: they do not.
ALTER TABLE "series" ADD COLUMN "instrument" text collate "C" DEFAULT '' NOT NULL;