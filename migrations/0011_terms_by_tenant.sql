DROP INDEX "entities_terms";--> statement-breakpoint
CREATE INDEX "entities_terms" ON "entities" USING gin (entity_terms(tenant_id, dimensions, core_properties, custom_properties));