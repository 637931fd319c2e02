-- oldest server: 0.1.0
-- GIN over (tenant, JSON), and search within texts. Both are trusted: the owner of a database may create them.
create extension if not exists btree_gin;
--> statement-breakpoint
create extension if not exists pg_trgm;
