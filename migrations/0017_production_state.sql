ALTER TABLE "entities" ADD COLUMN "model_production_state" bigint;--> statement-breakpoint
ALTER TABLE "entities" ADD COLUMN "window_production_state" bigint;--> statement-breakpoint
ALTER TABLE "entities" ADD COLUMN "priority" bigint;