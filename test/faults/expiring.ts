import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";
import type { Part } from "./beside.ts";
import { post } from "./notifications.ts";
import type { Random } from "./random.ts";
import type { Tenant } from "./stage.ts";

/** An event that expires, by what its reporter knows. */
interface Reported {
  /** When it was to expire, as it was sent first. */
  firstMs: number;
  /** When it was to expire after it was sent again, and when that was acknowledged; absent: it was not. */
  movedMs?: number;
  movedAckMs?: number;
  /** When its end was reported; absent: never. */
  endMs?: number;
}

/** Between the clocks of this process and of PostgreSQL, on one machine, and for an answer on its way. */
const aroundMs = 1000;
/** The last one expires this long after the end, and may be closed late by what is wrong then. */
const lastMs = 90_000;

interface Row {
  name: string;
  /** The ends of its occurrences, in order; an open one has none. */
  ends: (number | null)[];
  notes: number;
}

/** Ends that there may be, and how many of them are by expiry: a report that comes too late opens the next occurrence. */
function endings({ firstMs, movedMs, movedAckMs = 0, endMs }: Reported): { ends: number[]; notes: number }[] {
  if (endMs !== undefined) return [{ ends: [endMs], notes: 0 }];
  if (movedMs === undefined) return [{ ends: [firstMs], notes: 1 }];
  const moved = [{ ends: [movedMs], notes: 1 }];
  if (movedAckMs < firstMs - aroundMs) return moved;
  const again = [...moved, { ends: [firstMs, movedMs], notes: 2 }];
  return movedAckMs < movedMs - aroundMs ? again : [...again, { ends: [firstMs], notes: 1 }];
}

/**
 * Events that expire: some are sent again and then expire later, the end of others is reported. Each closes at its time, once, with
 * one note of the service, and not when its end came first.
 */
export function expiring(urls: readonly string[], { id: tenantId, agent }: Tenant, { int, chance }: Random): Part {
  const book = new Map<string, Reported>();
  const turned = (n: number) => (n % 2 === 0 ? urls : urls.toReversed());
  const put = async (n: number, event: object) => {
    const answer = await post(turned(n), agent, "data-receiver/events", { events: [event] });
    const { succeeded } = answer as { succeeded: number };
    if (succeeded !== 1) throw new Error(`an event that expires was refused: ${JSON.stringify(answer)}`);
  };

  async function turn(n: number) {
    const name = `heartbeat ${n}`;
    const sentMs = Date.now();
    const event = { name, dimensions: { source: `host ${n % 20}` }, timestamp: `${sentMs}`, status: "STATUS_OPEN" };
    const firstMs = sentMs + int(2000, 20_000);
    const reported: Reported = { firstMs };
    book.set(name, reported);
    await put(n, { ...event, expiresAt: `${firstMs}` });
    if (chance(0.3)) {
      reported.movedMs = firstMs + int(1000, 20_000);
      await put(n + 1, { ...event, expiresAt: `${reported.movedMs}` });
      reported.movedAckMs = Date.now();
      return;
    }
    // Its end lies well before its expiry only where the first report was taken at once.
    if (!chance(0.3) || Date.now() > sentMs + aroundMs) return;
    const endMs = sentMs + 1;
    const end = put(n + 1, { ...event, timestamp: `${endMs}`, status: "STATUS_CLOSED" });
    await end;
    // One that came after its expiry closes what is closed.
    if (Date.now() < firstMs - aroundMs) reported.endMs = endMs;
    else book.delete(name);
  }

  async function rows(db: Db): Promise<Row[]> {
    return await db<Row[]>`
      select e.name, array_agg(o.end_ms::float8 order by o.number) as ends,
        (select count(*)::int4 from annotations a where a.tenant_id = ${tenantId} and a.event_id = e.id) as notes
      from events e join occurrences o on o.tenant_id = ${tenantId} and o.event_id = e.id
      where e.tenant_id = ${tenantId} group by e.id, e.name`;
  }

  function differences(found: Map<string, Row>): string[] {
    const wrong: string[] = [];
    for (const [name, reported] of book) {
      const { ends, notes } = found.get(name) ?? { ends: [], notes: 0 };
      const fits = endings(reported).some((one) => `${one.ends}` === `${ends}` && one.notes === notes);
      if (!fits)
        wrong.push(`${name} was closed at ${ends} with ${notes} notes of the service: ${JSON.stringify(reported)}`);
    }
    return wrong;
  }

  return {
    beside: { name: "events that expire", restMs: 1000, turn },
    progress: () => `${book.size} events that expire`,
    async compare(db) {
      const endMs = performance.now() + lastMs;
      for (;;) {
        const wrong = differences(new Map((await rows(db)).map((row) => [row.name, row])));
        if (wrong.length === 0 || performance.now() > endMs) return wrong.slice(0, 10);
        await sleep(200);
      }
    },
  };
}
