-- oldest server: 0.1.0

-- Totals of what a tenant sets up, beside its counts. The version before leaves them empty.
ALTER TABLE "tenant_counts" ADD COLUMN "size" bigint;--> statement-breakpoint
ALTER TABLE "tenant_counts" ADD COLUMN "counted_ms" bigint;
