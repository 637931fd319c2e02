-- outside of a transaction
CREATE INDEX CONCURRENTLY "entities_parents" ON "entities" USING gin (coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id')) WITH (fastupdate=false) WHERE deleted_ms is null
  and coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id') is not null;
