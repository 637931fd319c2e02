/**
 * What clients keep of a server while it is replaced: what it returned to them, cursors of lists that they have half read, and the place in
 * the feed that their watch has reached. Another version must go on from there.
 */
import { setTimeout as sleep } from "node:timers/promises";
// Not Node's own, whose answers tests hold to this version's OpenAPI document.
import { fetch } from "undici";

type Headers = Record<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = any;

interface List {
  name: string;
  method: "GET" | "POST";
  path: string;
  /** The body that asks for the page after a cursor; lists that are read by GET have parameters. */
  body?: (page: { limit: number; cursor?: string }) => object;
  items: (answer: Json) => Json[];
  next: (answer: Json) => string;
}

const everything = { filter: { field: "dimensions.source", operation: "OP_EXISTS" } };
const hourMs = 3_600_000;
const limit = 2;
const sourceOf = (n: number) => ({ source: `kept ${n}` });

const byToken = (name: string, path: string, member: string): List => ({
  name,
  method: "GET",
  path,
  items: (answer) => answer[member],
  next: (answer) => answer.nextPageToken,
});

const byPage = (
  name: string,
  path: string,
  query: object,
  read: (answer: Json) => { items: Json[]; next: string },
) => ({
  name,
  method: "POST" as const,
  path,
  body: (page: object) => ({ ...query, page_input: page }),
  items: (answer: Json) => read(answer).items,
  next: (answer: Json) => read(answer).next,
});

/** Every list that a client of the first release reads page by page. */
function lists(nowMs: number): readonly List[] {
  const seriesQuery = {
    entityClause: { filter: { field: "dimensions.source", operation: "OP_EQUALS", value: "kept 1" } },
    downsample: { aggregator: "MEAN", period: "1m" },
    timeRange: { start: new Date(nowMs - hourMs).toISOString(), end: new Date(nowMs + hourMs).toISOString() },
  };
  return [
    {
      name: "events",
      method: "POST",
      path: "events:search",
      body: (page) => ({ query: { pageInput: page } }),
      items: ({ results }) => results,
      next: ({ pageInfo }) => pageInfo.endCursor,
    },
    {
      name: "entities",
      method: "POST",
      path: "modelcontext/entities:search",
      body: (page) => ({ search_input: { query: { clause: everything }, page_input: page } }),
      items: ({ entities }) => entities.entities,
      next: ({ pageInfo }) => pageInfo.endCursor,
    },
    {
      name: "series",
      method: "POST",
      path: "metrics:search",
      body: ({ cursor }) => ({ ...seriesQuery, pageSize: limit, ...(cursor && { pageToken: cursor }) }),
      items: ({ metrics }) => metrics,
      next: ({ nextPageToken }) => nextPageToken,
    },
    byPage("updaters", "modelcontext/custompropertyupdaters:list", {}, (answer) => ({
      items: answer.updaters,
      next: answer.page_info.cursor,
    })),
    byToken("triggers", "notification/triggers", "triggers"),
    byToken("destinations", "notification/destinations", "destinations"),
    byToken("rules", "notification/rules", "rules"),
    byToken("deliveries", "notification/deliveries", "deliveries"),
    byToken("credentials", "credentials", "credentials"),
    byToken("API clients", "api-clients", "apiClients"),
  ];
}

/** Calls /v1. @throws what was answered, if it is not 200 */
async function call(url: string, headers: Headers, method: string, path: string, body?: object): Promise<Json> {
  const answer = await fetch(`${url}/v1/${path}`, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

const pageOf = (url: string, headers: Headers, { method, path, body }: List, cursor?: string): Promise<Json> => {
  if (body !== undefined) return call(url, headers, method, path, body({ limit, ...(cursor && { cursor }) }));
  const query = new URLSearchParams({ pageSize: `${limit}`, ...(cursor && { pageToken: cursor }) });
  return call(url, headers, method, `${path}?${query}`);
};

/** The first message of a watch, which has its place, or the first change after that. */
async function watched(url: string, headers: Headers, cursor?: string): Promise<Json> {
  const answer = await fetch(`${url}/v1/events:watch`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ query: {}, ...(cursor && { cursor }) }),
    signal: AbortSignal.timeout(30_000),
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of answer.body as AsyncIterable<Uint8Array>) {
    text += decoder.decode(piece, { stream: true });
    for (const line of text.split("\n").slice(0, -1)) {
      const { result } = JSON.parse(line);
      if (result !== undefined && (cursor === undefined || result.event !== null)) return result;
    }
  }
  throw new Error(`the watch ended: ${text}`);
}

/** One of everything that the first release keeps, in a tenant that nothing else changes. */
async function fill(url: string, headers: Headers, nowMs: number, receiverUrl: string): Promise<void> {
  const post = (path: string, body: object) => call(url, headers, "POST", path, body);
  const five = [1, 2, 3, 4, 5];
  const models = five.map((n) => ({
    timestamp: `${nowMs}`,
    dimensions: sourceOf(n),
    metadataFields: { name: `Host ${n}`, type: "host" },
  }));
  await post("data-receiver/models", { models });
  const metrics = five.map((n) => ({ metric: `m${n}`, timestamp: `${nowMs}`, value: n / 3, dimensions: sourceOf(1) }));
  await post("data-receiver/metrics", { metrics });
  const filter = { field: "entity.name", operation: "OP_STARTS_WITH", value: "Host" };
  const updaters = five.map((n) => ({
    name: `updater ${n}`,
    entity_input: { clause: { filter } },
    properties: { [`p${n}`]: "x" },
    enabled: false,
    sequence: n,
  }));
  await post("modelcontext/custompropertyupdaters:create", { updaters });
  for (const n of five) {
    const name = `kept ${n}`;
    await post("api-clients", { name, type: "DATA_INGEST" });
    await post("credentials", { info: { name, type: "incidentPaging" }, secrets: { routingKey: "R".repeat(32) } });
    const clause = { contains: { field: "name", value: "disk" } };
    await post("notification/triggers", { name, type: { event: { query: { clause } } } });
    const webhook = { url: receiverUrl, signingSecret: `whsec_${Buffer.alloc(24, n).toString("base64")}` };
    await post("notification/destinations", { name, type: { webhook } });
    const names = { triggerNames: [name], destinationNames: [name] };
    await post("notification/rules", { name, enabled: true, message: "{{event.name}}", ...names });
  }
  await post("data-receiver/events", { events: five.map((n) => eventOf(n, nowMs)) });
}

const eventOf = (n: number, timestampMs: number) => ({
  name: `disk ${n}`,
  timestamp: `${timestampMs}`,
  dimensions: sourceOf(n),
  severity: "SEVERITY_ERROR",
  status: n === 1 ? "STATUS_CLOSED" : "STATUS_OPEN",
  summary: `of ${n}`,
});

/** What changes by itself from one answer to the next. */
const volatile = /^(?:notifications|counts?24h|lastUsed\w*|matchCount|usage)$/;

/** Where an answer lacks or changes what an earlier one had; what a version adds is welcome. */
export function differences(before: Json, after: Json, path: string): string[] {
  if (typeof before !== "object" || before === null)
    return before === after ? [] : [`${path} was ${JSON.stringify(before)} and is ${JSON.stringify(after)}`];
  if (typeof after !== "object" || after === null) return [`${path} is ${JSON.stringify(after)}`];
  if (Array.isArray(before) && before.length !== after.length)
    return [`${path} had ${before.length} items, not ${after.length}`];
  return Object.keys(before)
    .filter((name) => !volatile.test(name))
    .flatMap((name) => differences(before[name], after[name], `${path}.${name}`));
}

/** All items of a list, from its beginning or from a cursor, and the cursor after the first page. */
async function itemsOf(url: string, headers: Headers, list: List, from?: string) {
  const items: Json[] = [];
  let cursor = from;
  let afterFirst = "";
  do {
    const page = await pageOf(url, headers, list, cursor);
    items.push(...list.items(page));
    cursor = list.items(page).length === 0 ? "" : list.next(page);
    afterFirst ||= cursor ?? "";
  } while (cursor);
  return { items, afterFirst };
}

/** Kept by clients of a version of the server. */
export interface Kept {
  /** Goes on with it on a server; returns what is wrong, a line each. */
  compare(url: string): Promise<string[]>;
}

/** Sends one of everything to a server, and reads the first page of each list. The tenant must be its own. */
export async function keep(url: string, headers: Headers, receiverUrl: string): Promise<Kept> {
  const nowMs = Date.now();
  await fill(url, headers, nowMs, receiverUrl);
  for (let tries = 0; ; tries++) {
    const { deliveries } = await call(url, headers, "GET", "notification/deliveries");
    if (deliveries.length >= 4 && deliveries.every(({ status }: Json) => status === "SENT")) break;
    if (tries > 300) throw new Error(`deliveries are ${JSON.stringify(deliveries)}`);
    await sleep(100);
  }
  const { cursor: place } = await watched(url, headers);
  await call(url, headers, "POST", "data-receiver/events", { events: [{ ...eventOf(6, nowMs), name: "after" }] });
  const change = await watched(url, headers, place);
  const books: { list: List; items: Json[]; cursor: string }[] = [];
  for (const list of lists(nowMs)) {
    const { items, afterFirst: cursor } = await itemsOf(url, headers, list);
    if (items.length < 2 * limit || cursor === "") throw new Error(`${list.name}: ${items.length} items`);
    books.push({ list, items, cursor });
  }
  return {
    async compare(other) {
      const wrong: string[] = [];
      for (const { list, items, cursor } of books) {
        const [all, rest] = [await itemsOf(other, headers, list), await itemsOf(other, headers, list, cursor)];
        wrong.push(...differences(items, all.items, list.name));
        wrong.push(...differences(items.slice(limit), rest.items, `${list.name} after a cursor`));
      }
      wrong.push(...differences(change, await watched(other, headers, place), "watch"));
      return wrong;
    },
  };
}
