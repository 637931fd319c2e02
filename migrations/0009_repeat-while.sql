-- oldest server: 0.1.0

ALTER TABLE "rules" ADD COLUMN "repeat_while" smallint;