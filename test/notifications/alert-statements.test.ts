import { expect, test } from "vitest";
import { sessionName } from "../../src/db/session-name.ts";
import { sending } from "../support/sent-statements.ts";
import { testServer } from "../support/server.ts";
import { groupPlace } from "./groups/group-place.ts";

/** Connections on which an alert is taken in, decided about and sent. */
const onTheWay = [sessionName("ingest"), sessionName("sending")];

const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });

async function statementsOf(names: readonly string[]): Promise<string[]> {
  const { rule, reportAll, arrive, until, receiver } = await groupPlace(server);
  await rule("page", {});
  await reportAll(names.map((name) => `before ${name}`));
  await arrive(names.length);
  await until(...names.map(() => "first SENT"));
  receiver.received.length = 0;
  const sent: string[] = [];
  sending.listener = (read) => {
    const { text, connections = [] } = read();
    if (connections.some((name) => onTheWay.some((way) => name.startsWith(way))))
      sent.push(`${connections[0]?.split(" ").at(-1)}: ${text.replace(/\s+/g, " ").trim()}`);
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

test("one alert with one rule and one webhook", async () => {
  const sent = await statementsOf(["disk full"]);
  console.log(sent.length, sent.map((s) => s.slice(0, 230)).join("\n"));
});
test("eight", async () => {
  const sent = await statementsOf(Array.from({ length: 8 }, (_, i) => `disk ${i}`));
  console.log(sent.length, sent.map((s) => s.slice(0, 130)).join("\n"));
});
