import { setTimeout as sleep } from "node:timers/promises";
import type { Part } from "./beside.ts";
import type { Random } from "./random.ts";
import type { Tenant } from "./stage.ts";

type Headers = Record<string, string>;

/** A session, as its browser holds it. */
export interface BrowserSession {
  id: string;
  /** What the console's page sends with each request. */
  headers: Headers;
}

/** A fault is over by then. */
const patienceMs = 90_000;
/** What no server takes a second after its end (proto/belfry/tenants/v1/session_service.proto). */
const goneMs = 1500;
const keptMax = 5;
const ownPage = { "sec-fetch-site": "same-origin" };

/** Sends a request to one server until it says yes or no to it, and not that it cannot now. */
async function answered(url: string, path: string, init: RequestInit): Promise<Response> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    const answer = await fetch(`${url}/v1/${path}`, { ...init, signal: AbortSignal.timeout(10_000) }).catch(
      () => undefined,
    );
    if (answer !== undefined && [200, 400, 401, 403, 404].includes(answer.status)) return answer;
    if (performance.now() > endMs)
      throw new Error(`${path}: no answer for ${patienceMs} ms, at last ${answer?.status}`);
    await answer?.text().catch(() => undefined);
    await sleep(100);
  }
}

/** Logs in with a key, as the console's page does. */
export async function logIn(url: string, key: string): Promise<BrowserSession> {
  const headers = { ...ownPage, "content-type": "application/json" };
  const answer = await answered(url, "console-sessions", { method: "POST", headers, body: JSON.stringify({ key }) });
  const text = await answer.text();
  const [cookie] = answer.headers.getSetCookie();
  if (answer.status !== 200 || cookie === undefined) throw new Error(`a log-in was answered ${answer.status}: ${text}`);
  const { session, pageProof } = JSON.parse(text) as { session: { id: string }; pageProof: string };
  return {
    id: session.id,
    headers: { ...ownPage, cookie: cookie.slice(0, cookie.indexOf(";")), "service-session-proof": pageProof },
  };
}

/** Whether a server takes a session. */
async function holds(url: string, { id, headers }: BrowserSession): Promise<boolean> {
  const answer = await answered(url, "console-sessions/current", { headers });
  const text = await answer.text();
  if (answer.status === 401) return false;
  const found = (JSON.parse(text) as { session?: { id: string } }).session?.id;
  if (answer.status !== 200 || found !== id) throw new Error(`session ${id} was answered ${answer.status}: ${text}`);
  return true;
}

/** People who log in at one server, are known at all of them, and log out: then they are known at none. Some stay. */
export function comingAndGoing(urls: readonly string[], { id: tenantId, manager }: Tenant, { pick }: Random): Part {
  const key = manager["service-api-key"] as string;
  const kept: BrowserSession[] = [];
  const ended: string[] = [];
  return {
    beside: {
      name: "sessions",
      restMs: 1000,
      async turn() {
        const session = await logIn(pick(urls), key);
        for (const url of urls)
          if (!(await holds(url, session))) throw new Error(`session ${session.id} is refused at ${url}`);
        if (kept.length < keptMax) return void kept.push(session);
        const out = await answered(pick(urls), "console-sessions/current", {
          method: "DELETE",
          headers: session.headers,
        });
        // Sent again, it was ended before.
        if (out.status !== 200 && out.status !== 401) throw new Error(`a log-out was answered ${out.status}`);
        await sleep(goneMs);
        for (const url of urls)
          if (await holds(url, session)) throw new Error(`session ${session.id} has ended, and is taken at ${url}`);
        ended.push(session.id);
      },
    },
    progress: () => `${ended.length + kept.length} sessions`,
    async compare(db) {
      const wrong: string[] = [];
      for (const session of kept)
        for (const url of urls)
          if (!(await holds(url, session))) wrong.push(`session ${session.id} stayed, and is refused at ${url}`);
      const rows = await db<{ id: string }[]>`select id from console_sessions where tenant_id = ${tenantId}`;
      const stored = new Set(rows.map(({ id }) => id));
      for (const id of ended) if (stored.has(id)) wrong.push(`session ${id} has ended, and is stored`);
      return wrong;
    },
  };
}
