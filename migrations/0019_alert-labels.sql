-- oldest server: 0.1.0

-- The labels of alerts whose metadata do not hold them whole. The version before leaves it empty.
ALTER TABLE "events" ADD COLUMN "alert_labels" json;
