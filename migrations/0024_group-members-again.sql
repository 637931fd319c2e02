-- oldest server: 0.1.0

-- Where a member is sent as firing once more. The version before leaves it empty, and does not send it there again.
ALTER TABLE "group_members" ADD COLUMN "again_at" text[] collate "C" DEFAULT '{}' NOT NULL;
