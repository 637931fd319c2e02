import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { transaction } from "../../../src/db/transaction.ts";
import { lockWaits } from "../../support/lock-waits.ts";
import { silencePlace } from "./place.ts";

type Place = Awaited<ReturnType<typeof silencePlace>>;

/** Ends or changes silences while a transaction that stores what they hold waits before its commit. */
async function whileHeldIsStored(
  { server, tenant }: Place,
  store: () => Promise<unknown>,
  end: () => Promise<unknown>,
) {
  const { sql } = server.database;
  const stored = Promise.withResolvers<unknown>();
  const ended = await transaction(sql, async (tx) => {
    // The last that the transaction locks.
    await tx`
      insert into due_work (tenant_id, kind, due_ms) values (${tenant.id}, 'deliveries', 0)
      on conflict do nothing`;
    await tx`select from due_work where tenant_id = ${tenant.id} and kind = 'deliveries' for update`;
    store().then(stored.resolve, stored.reject);
    while ((await lockWaits(sql, "%into due_work%")) === 0) await sleep(5);
    let over = false;
    const ending = end().finally(() => {
      over = true;
    });
    while (!over && (await lockWaits(sql, "%silences%")) === 0) await sleep(5);
    return { ending };
  });
  await Promise.all([ended.ending, stored.promise]);
}

const ends: [string, (place: Place, id: string) => Promise<unknown>][] = [
  ["ended", ({ ok }, id) => ok("POST", `/v1/notification/silences/${id}:expire`, {})],
  [
    "given an earlier end",
    ({ ok, inMs }, id) =>
      ok("PUT", `/v1/notification/silences/${id}`, { matchers: ["source=web"], endsAt: inMs(1000), comment: "c" }),
  ],
  [
    "replaced with narrower matchers",
    ({ ok, inMs }, id) =>
      ok("PUT", `/v1/notification/silences/${id}`, {
        matchers: ["source=web", "source=db"],
        endsAt: inMs(3_600_000),
        comment: "c",
      }),
  ],
  [
    "narrowed to another rule",
    ({ ok, inMs }, id) =>
      ok("PUT", `/v1/notification/silences/${id}`, {
        matchers: ["source=web"],
        ruleNames: ["other"],
        endsAt: inMs(3_600_000),
        comment: "c",
      }),
  ],
];

test.each(ends)(
  "what is decided while its silence is %s is sent once, when the silence ends",
  { timeout: 20_000 },
  async (_what, end) => {
    const place = await silencePlace();
    await place.rule("r");
    await place.rule("other", { enabled: false });
    const { id } = await place.silence();
    await whileHeldIsStored(
      place,
      () => place.report("disk"),
      () => end(place, id),
    );
    await place.until("first SENT");
    expect(place.arrived()).toHaveLength(1);
  },
);

test.each(ends)(
  "what is judged while its silence is %s is sent once, when the silence ends",
  { timeout: 20_000 },
  async (_what, end) => {
    const place = await silencePlace();
    const { receiver, tenant, server, arrived, silence } = place;
    const { sql } = server.database;
    await place.rule("r");
    await place.rule("other", { enabled: false });
    receiver.answer((_request, response) => response.writeHead(503).end());
    await place.report("disk");
    const waits = () => sql`select from due_deliveries where tenant_id = ${tenant.id} and tries > 0`;
    while ((await waits()).length === 0) await sleep(20);
    receiver.answer((_request, response) => response.writeHead(200).end());
    await sql`update due_deliveries set due_ms = ${Date.now() + 3_600_000} where tenant_id = ${tenant.id}`;
    const { id } = await silence();
    await whileHeldIsStored(
      place,
      async () => {
        await sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id}`;
        // Wakes what sends.
        await silence({ matchers: ["source=elsewhere"] });
      },
      () => end(place, id),
    );
    await place.until("first SENT");
    expect(arrived()).toHaveLength(2);
  },
);
