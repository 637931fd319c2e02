import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { sessionName } from "../../src/db/session-name.ts";
import { sending } from "../support/sent-statements.ts";
import { testServer } from "../support/server.ts";
import { groupPlace } from "./groups/group-place.ts";

/** The connections on which an alert is taken in, decided about and sent. */
const onTheWay = [sessionName("ingest"), sessionName("sending")];

/** What a look for due work sends every second, whatever came in: counted apart, since it takes all tenants together. */
const polls = [/^with recursive due /, /^select tenant_id, kind, due_ms/];

const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });

/** Returns what is sent to the database from the report of alerts to the record of their notifications, by connection. */
async function statementsOf(names: readonly string[]): Promise<string[]> {
  const { rule, reportAll, arrive, until, receiver } = await groupPlace(server);
  await rule("page");
  // What is asked once, as of an entity that is new, is asked before.
  await reportAll(names.map((name) => `before ${name}`));
  await arrive(names.length);
  await until(...names.map(() => "first SENT"));
  // The next poll takes the tenant from those with something due.
  await sleep(1500);
  receiver.received.length = 0;
  const sent: string[] = [];
  sending.listener = (read) => {
    const { text, connections: [name = ""] = [] } = read();
    const plain = text.replaceAll(/\s+/g, " ").trim();
    if (onTheWay.some((way) => name.startsWith(way)) && !polls.some((poll) => poll.test(plain)))
      sent.push(`${name.startsWith(sessionName("ingest")) ? "ingest" : "sending"}: ${plain.slice(0, 160)}`);
  };
  try {
    await reportAll(names);
    await arrive(names.length);
    await until(...names.flatMap(() => ["first SENT", "first SENT"]));
  } finally {
    sending.listener = undefined;
  }
  return sent;
}

test("one alert takes at most 42 statements", async () => {
  const sent = await statementsOf(["disk full"]);
  expect(sent.length, sent.join("\n")).toBeLessThanOrEqual(42);
});

test("eight alerts of one request take at most 7 each", async () => {
  const sent = await statementsOf(Array.from({ length: 8 }, (_, i) => `disk ${i}`));
  expect(sent.length / 8, sent.join("\n")).toBeLessThanOrEqual(7);
});
