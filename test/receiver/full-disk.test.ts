import { expect } from "vitest";
import { onOnePostgres } from "../support/one-postgres.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

onOnePostgres("triggers")(
  "a report that a full disk has refused is answered with that, and with nothing that was stored",
  async () => {
    const server = await testServer({});
    const { sql } = server.database;
    const tenant = await testTenant(sql);
    const call = v1(server.url, tenant.headers);
    await sql.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`);
    await sql.unsafe(
      `create trigger refused before insert on events for each row when (new.tenant_id = '${tenant.id}') execute function refuse()`,
    );
    const event = { name: "disk full", timestamp: String(Date.now()), dimensions: { source: "web-1" } };
    const answer = await call("POST", "/v1/data-receiver/events", { events: [event] });
    await sql.unsafe("drop trigger refused on events");
    expect(answer).toMatchObject({
      status: 503,
      body: { code: 14, message: "the database's disk is full; send the request again when it has room" },
    });
    expect((await call("POST", "/v1/events:search", { query: {} })).body.results).toEqual([]);
    const again = { ...event, severity: "SEVERITY_ERROR", status: "STATUS_OPEN" };
    expect((await call("POST", "/v1/data-receiver/events", { events: [again] })).body).toMatchObject({ succeeded: 1 });
  },
);
