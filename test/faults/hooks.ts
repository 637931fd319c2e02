/**
 * Webhooks below `/hooks/`, whose addresses are secrets: those that servers of each version make while they take turns. Each gets all that
 * is sent from then on, whichever version sends it.
 */
import { setTimeout as sleep } from "node:timers/promises";
// Not Node's own, whose answers tests hold to this version's OpenAPI document.
import { fetch } from "undici";
import type { Sql } from "../../src/db/connect.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { post } from "./notifications.ts";

type Headers = Record<string, string>;

const hidden = "********";
/** So many events a stage: servers that share the work each send some. */
const eventsOfStage = 10;
const arriveMs = 60_000;
const sealMs = 60_000;
const triggerName = "hooks";

/** What arrived, by the last step of the address: names of events. */
type Arrivals = ReadonlyMap<string, string[]>;

/** What was made and sent: by the name of a destination, which events it is to get. */
type Expected = ReadonlyMap<string, ReadonlySet<string>>;

function differing(expected: Expected, arrivals: Arrivals): string[] {
  const unknown = [...arrivals.keys()].filter((path) => !expected.has(path));
  return [
    ...unknown.map((path) => `${path} is the address of no webhook`),
    ...[...expected].flatMap(([name, events]) => {
      const got = new Set(arrivals.get(name));
      const [missing, more] = [[...events].filter((event) => !got.has(event)), [...got].filter((e) => !events.has(e))];
      return [
        ...(missing.length > 0 ? [`${name} did not get ${missing.join(", ")}`] : []),
        ...(more.length > 0 ? [`${name} got ${more.join(", ")}`] : []),
      ];
    }),
  ];
}

async function receiving(stack: AsyncDisposableStack) {
  const receiver = await httpReceiver();
  stack.defer(() => receiver[Symbol.asyncDispose]());
  const arrivals = new Map<string, string[]>();
  receiver.answer((request, response, socket) => {
    const { event } = JSON.parse(request.body) as { event: { name: string } };
    const [, name = request.path] = /^\/hooks\/secret-of-(.+)$/.exec(request.path) ?? [];
    arrivals.set(name, [...(arrivals.get(name) ?? []), event.name]);
    receiver.received.length = 0;
    answering(200)(request, response, socket);
  });
  return { arrivals, addressOf: (name: string) => `${receiver.url}/hooks/secret-of-${name}` };
}

/** Lets a server replace the address of a webhook by `********`; returns the status of its answer. */
async function keepAddress(url: string, headers: Headers, name: string): Promise<number> {
  const answer = await fetch(`${url}/v1/notification/destinations/${name}`, {
    method: "PUT",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ type: { webhook: { url: hidden } } }),
  });
  await answer.text();
  return answer.status;
}

/** The deliveries that were not sent at their first try, and those that wait. */
async function troubled(db: Sql, tenantId: string): Promise<string[]> {
  const rows = await db<{ name: string; status: string; error: string }[]>`
    select destination_name as name, status, error from delivery_history
    where tenant_id = ${tenantId} and (status <> 'SENT' or error <> '')
    union all select destination_name, 'waits', error from due_deliveries where tenant_id = ${tenantId} and error <> ''`;
  return rows.map(({ name, status, error }) => `a delivery to ${name}: ${status} ${error}`);
}

/** The webhooks of a tenant that has nothing else. */
export type Hooks = Awaited<ReturnType<typeof hooks>>;

/**
 * Begins with none. Where `mayHide` is false, a server that would dial `********` uses the database: then PostgreSQL refuses to store that
 * as an address until `begin` is called.
 */
export async function hooks(
  stack: AsyncDisposableStack,
  { db, tenantId, headers, mayHide }: { db: Sql; tenantId: string; headers: Headers; mayHide: boolean },
) {
  const { arrivals, addressOf } = await receiving(stack);
  const expected = new Map<string, Set<string>>();
  let sent = 0;
  let isHiding = mayHide;
  if (!mayHide)
    await db`alter table destinations add constraint no_address_is_hidden
      check (type #>> '{webhook,url}' is distinct from '********')`;

  return {
    /** Makes one over a server, with a rule that sends all to it. */
    async make(url: string, name: string) {
      const own = async (path: string, body: object) => await post([url], headers, `notification/${path}`, body);
      const clause = { contains: { field: "name", value: "hook" } };
      if (expected.size === 0) await own("triggers", { name: triggerName, type: { event: { query: { clause } } } });
      await own("destinations", { name, type: { webhook: { url: addressOf(name) } } });
      await own("rules", { name, enabled: true, triggerNames: [triggerName], destinationNames: [name] });
      expected.set(name, new Set());
    },

    /** Sends `********` as the address of one, which is kept where a server knows what that means, and refused elsewhere. */
    async keep(url: string, name: string, isKnown: boolean) {
      const status = await keepAddress(url, headers, name);
      if (status !== (isKnown ? 200 : 400)) throw new Error(`a PUT of ${hidden} to ${name} answers ${status}`);
    },

    /** Sends events to these servers in turns. @throws what has not arrived within a minute, or elsewhere */
    async send(urls: readonly string[], when: string) {
      for (let i = 0; i < eventsOfStage; i++, sent++) {
        const event = { name: `hook ${sent}`, timestamp: `${Date.now()}`, dimensions: { source: `host ${sent}` } };
        const events = [{ ...event, severity: "SEVERITY_ERROR", status: "STATUS_OPEN" }];
        await post([urls[i % urls.length] as string], headers, "data-receiver/events", { events });
        for (const events of expected.values()) events.add(event.name);
      }
      const endMs = performance.now() + arriveMs;
      while (differing(expected, arrivals).length > 0 && performance.now() < endMs) await sleep(100);
      const wrong = [...differing(expected, arrivals), ...(await troubled(db, tenantId))];
      if (wrong.length > 0) throw new Error(`${when}: ${wrong.join("\n")}`);
    },

    /** Ends the time in which servers of before count as seen; resolves when no address is stored as it is. */
    async begin() {
      if (!isHiding) {
        await db`alter table destinations drop constraint no_address_is_hidden`;
        await db`update migrations set applied_at = now() - interval '2 days' where name = '0026_closed-by'`;
      }
      isHiding = true;
      const endMs = performance.now() + sealMs;
      for (let plain = expected.size; plain > 0; await sleep(100)) {
        const [row] = await db<{ plain: number }[]>`
          select count(*)::int4 as plain from destinations where tenant_id = ${tenantId} and type::text like '%secret-of%'`;
        plain = row?.plain ?? plain;
        if (performance.now() > endMs) throw new Error(`${plain} addresses are stored as they are`);
      }
    },

    names: () => [...expected.keys()],
    told: () => `${expected.size} webhooks below /hooks/ got ${sent} events`,
  };
}
