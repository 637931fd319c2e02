-- Half of each page stays free for what models change in its rows: names and what custom properties say stand in indexes,
-- metadata and liveness do not, and a row that finds room on its page is rewritten without a new entry in any index.
ALTER TABLE "entities" SET (fillfactor = 50);
