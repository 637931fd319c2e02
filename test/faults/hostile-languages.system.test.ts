import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Language, language } from "#gen/belfry/limits/v1/limits_pb.ts";
import { type IntegrationParts, integrations } from "../../src/integrations/table.ts";
import { tool } from "../integrations/calls.ts";
import { allMethods, callName, callRpc, newWorld, readCalls } from "../support/calls.ts";
import { hostileExpressions, hostileTemplates } from "../support/hostile-texts.ts";
import { heldMs, turnMsMax } from "../support/loop-turns.ts";
import { testServer } from "../support/server.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({});
const world = await newWorld(server);
const calls = await readCalls();
const { headers } = world.tenant;
const field = "metadataFields.long";
const texts: Readonly<Record<number, readonly string[]>> = {
  [Language.MATCHER]: hostileExpressions.map((text) => `long=~${JSON.stringify(text)}`),
  [Language.EXPRESSION]: hostileExpressions,
  [Language.TEMPLATE]: hostileTemplates,
};

/** The ways from a message to the fields of it that are marked; a message is entered once on each. */
function waysIn(message: DescMessage, around: readonly DescMessage[] = []): DescField[][] {
  return message.fields.flatMap((each) => {
    if (getOption(each, language) !== Language.UNSPECIFIED) return [[each]];
    if (each.message === undefined || around.includes(each.message) || each.fieldKind === "map") return [];
    return waysIn(each.message, [...around, message]).map((way) => [each, ...way]);
  });
}

/** A request in JSON with a text in its marked field, beside what a good one has. */
function withText(base: JsonValue | undefined, [first, ...rest]: readonly DescField[], text: string): JsonValue {
  const before = (base ?? {}) as Record<string, JsonValue>;
  if (first === undefined) return text;
  const others =
    first.oneof === undefined
      ? {}
      : Object.fromEntries(first.oneof.fields.map(({ jsonName }) => [jsonName, undefined]));
  const there = before[first.jsonName];
  const inner = rest.length === 0 ? text : withText(Array.isArray(there) ? there[0] : there, rest, text);
  const value = first.fieldKind === "list" ? [inner] : first.fieldKind === "map" ? { text: inner } : inner;
  const regex = first.parent.name === "Filter" ? { field, operation: "OP_REGEX" } : {};
  const kept = first.parent.name === "Clause" || first.parent.name === "TriggerClause" ? {} : before;
  return JSON.parse(JSON.stringify({ ...kept, ...others, ...regex, [first.jsonName]: value }));
}

const marked = allMethods.flatMap((method) => waysIn(method.input).map((way) => ({ method, way })));

test("every marked field is reached by an RPC", () => {
  const reached = new Set(marked.map(({ way }) => way.at(-1)?.toString()));
  expect(reached.size).toBeGreaterThan(10);
});

/** Reports an event whose metadata are as long as an expression may meet. */
async function report(key: Record<string, string>): Promise<void> {
  const event = {
    name: "long",
    dimensions: { source: "a" },
    timestamp: String(Date.now()),
    severity: "SEVERITY_ERROR",
  };
  const events = [{ ...event, status: "STATUS_OPEN", metadataFields: { long: "ab a".repeat(12_000) } }];
  const { body } = await v1(server.url, key)("POST", "/v1/data-receiver/events", { events });
  expect(body).toMatchObject({ succeeded: 1 });
}

interface Sample {
  base: JsonValue;
  key: Record<string, string>;
}

/** Makes a good request of a method, in a tenant of its own: what samples need has the same names. */
async function sampleOf(method: DescMethod): Promise<Sample> {
  const own = await newWorld(server);
  await report(own.tenant.headers);
  const row = calls[callName(method)];
  const sample = row && method.methodKind !== "client_streaming" ? await row.request(own) : {};
  return {
    base: toJson(method.input, create(method.input, sample as Record<string, unknown>)),
    key: own.tenant.headers,
  };
}

test("hostile texts in every marked field and parameter, alone and all at once, are answered in turns of 250 ms", async () => {
  await report(headers);
  const api = tool(server, headers);
  const asked: { name: string; ask: () => Promise<unknown> }[] = [];
  const samples = new Map<string, Sample>();
  for (const { method, way } of marked) {
    const name = `${callName(method)} ${way.map(({ name }) => name).join(".")}`;
    const { base, key } = samples.get(callName(method)) ?? (await sampleOf(method));
    samples.set(callName(method), { base, key });
    for (const text of texts[getOption(way.at(-1) as DescField, language)] ?? []) {
      const request = fromJson(method.input, withText(base, way, text));
      const ask = () => callRpc(server.target, key, method, request, AbortSignal.timeout(5000));
      asked.push({
        name,
        ask: () =>
          ask().then(
            () => 0,
            (error: { code?: number }) => error.code,
          ),
      });
    }
  }
  for (const { operations } of integrations({ config: {} } as IntegrationParts))
    for (const { routes, languages = {} } of operations)
      for (const [route, [parameter, kind]] of routes.flatMap((route) =>
        Object.entries(languages).map((each) => [route, each] as const),
      ))
        for (const text of texts[Language[kind]] ?? []) {
          if ("grpc" in route) continue;
          const { method, path } = route;
          const place = `${path}?${parameter}=${encodeURIComponent(text)}`;
          const ask = async () => {
            const { status } = await api(method, place);
            return { 200: 0, 400: 3 }[status] ?? status;
          };
          asked.push({ name: place.slice(0, 60), ask });
        }
  const wrong: string[] = [];
  const judge = async ({ name, ask }: (typeof asked)[number]) => {
    const code = await ask();
    // A watch has nothing to say until something happens; a name may be there already; clauses of metrics take no expression.
    if (![0, 1, 3, 4, 5, 6, 9, 12].includes(code as number)) wrong.push(`${name}: ${code}`);
  };
  for (const each of asked) {
    const { turn } = await heldMs(() => judge(each));
    if (turn > turnMsMax) wrong.push(`${each.name}: a turn of ${turn} ms`);
  }
  const { turn } = await heldMs(() => Promise.all(asked.map(judge)));
  if (turn > turnMsMax) wrong.push(`all at once: a turn of ${turn} ms`);
  expect(wrong).toEqual([]);
  expect(asked.length).toBeGreaterThan(100);
}, 600_000);
