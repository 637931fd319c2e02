import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";
import { answering, type HttpReceiver } from "../support/receivers.ts";
import type { Part } from "./beside.ts";
import { post } from "./notifications.ts";
import type { Random } from "./random.ts";
import type { Tenant } from "./stage.ts";

/** One group each. */
const hosts = 10;
const waitSec = 2;
const intervalSec = 5;
/** Longer than any silence of this part, and than what is wrong at the end. */
const lastMs = 120_000;

interface Message {
  alerts: { status: "firing" | "resolved"; labels: { alertname: string } }[];
}

/** What the receiver has been told of an event last, and whether it is over. */
interface Known {
  host: string;
  told: "nothing" | "firing" | "resolved";
  ended: boolean;
}

const rule = "grouped";

/**
 * Events of ten hosts, each host a group of one rule in Alertmanager's form, while silences over hosts come and go. An event ends once the
 * receiver has been told of it, or without that: of the first kind each is told, and each that was told is told to be over, last.
 */
export async function groupedAndSilenced(
  urls: readonly string[],
  { id: tenantId, agent, manager }: Tenant,
  receiver: HttpReceiver,
  { int, chance }: Random,
): Promise<Part> {
  const book = new Map<string, Known>();
  const messages = new Set<string>();
  let silences = 0;
  receiver.answer((request, response, socket) => {
    const id = String(request.headers["webhook-id"]);
    receiver.received.length = 0;
    // A message that is tried again says what it said.
    if (!messages.has(id)) {
      messages.add(id);
      for (const { status, labels } of (JSON.parse(request.body) as Message).alerts) {
        const known = book.get(labels.alertname);
        if (known) known.told = status;
      }
    }
    answering(200)(request, response, socket);
  });
  const make = (path: string, body: object) => post(urls, manager, `notification/${path}`, body);
  const webhook = { url: receiver.url, format: "WEBHOOK_FORMAT_ALERTMANAGER" };
  await make("destinations", { name: rule, type: { webhook } });
  const grouping = { by: ["host"], waitSec: `${waitSec}`, intervalSec: `${intervalSec}` };
  await make("rules", {
    name: rule,
    enabled: true,
    matchers: ["severity=error"],
    destinationNames: [rule],
    sendUpdates: true,
    grouping,
  });

  const put = async (n: number, name: string, host: string, status: "STATUS_OPEN" | "STATUS_CLOSED") => {
    const event = { name, dimensions: { host }, timestamp: `${Date.now()}`, severity: "SEVERITY_ERROR", status };
    await post(n % 2 === 0 ? urls : urls.toReversed(), agent, "data-receiver/events", { events: [event] });
  };
  const end = async (n: number, name: string, known: Known) => {
    await put(n, name, known.host, "STATUS_CLOSED");
    known.ended = true;
  };

  async function turn(n: number) {
    const host = `host-${n % hosts}`;
    const name = `member ${n}`;
    book.set(name, { host, told: "nothing", ended: false });
    await put(n, name, host, "STATUS_OPEN");
    for (const [open, known] of book) if (!known.ended && known.told === "firing") await end(n, open, known);
    if (chance(0.1)) await end(n, name, book.get(name) as Known);
    if (n % 20 === 0) {
      const endsAt = `${Date.now() + int(2000, 20_000)}`;
      const silence = { matchers: [`host=host-${int(0, hosts - 1)}`], endsAt, comment: "works on it" };
      // A server whose clock has stepped, or that was paused, reads it when it is over.
      await make("silences", silence).catch((error: Error) => {
        if (!error.message.includes("endsAt: must be after")) throw error;
      });
      silences += 1;
    }
  }

  /** Lines of what is not so yet. */
  function missing(): string[] {
    return [...book].flatMap(([name, { told, ended }]) => {
      if (told === "nothing" && !ended) return [`nobody was told of ${name}`];
      return told === "firing" ? [`nobody was told that ${name} is over`] : [];
    });
  }

  return {
    beside: { name: "groups with silences", restMs: 300, turn },
    progress: () => `${messages.size} messages of groups over ${book.size} events, ${silences} silences`,
    async compare(db) {
      const endMs = performance.now() + lastMs;
      for (let n = 0; missing().length > 0 && performance.now() < endMs; n++) {
        for (const [name, known] of book) if (!known.ended && known.told === "firing") await end(n, name, known);
        await sleep(500);
      }
      return [...missing().slice(0, 10), ...(await unrecorded(db))];
    },
  };

  /** Messages that arrived and are not recorded as sent, and the other way round. */
  async function unrecorded(db: Db): Promise<string[]> {
    const rows = await db<{ id: string; status: string }[]>`
      select id, status from delivery_history
      where tenant_id = ${tenantId} and rule_name = ${rule} and (status = 'SENT' or attempts @> '[{"reason": "lost"}]')`;
    const told = new Set(rows.map(({ id }) => id));
    const sent = rows.flatMap(({ id, status }) => (status === "SENT" ? [id] : []));
    return [
      // Of a server that is killed while it sends, the next one tells that it may have arrived.
      ...[...messages]
        .filter((id) => !told.has(id))
        .map((id) => `message ${id} arrived and the history does not say so`),
      ...sent.filter((id) => !messages.has(id)).map((id) => `message ${id} is recorded as sent and did not arrive`),
    ].slice(0, 10);
  }
}
