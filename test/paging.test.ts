import { type DescMethod, type Message, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { DeliveryService } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { eventTrigger, webhook } from "./notifications/samples.ts";
import { allMethods, callName, callRpc, isBuilt, newWorld, type World } from "./support/calls.ts";
import { consumed } from "./support/consumed.ts";
import { testServer } from "./support/server.ts";

const server = await testServer();

/** Makes several items of a list, names that order badly among them, and answers what its request needs beside the page. */
type Fill = (world: World) => Promise<object>;

const password = "Correct-horse-7";
const names = ["b", "B", "a/b", "Z\u{1f600}", "\uffef", "ab", "é", "k8s.pod.uptime", "name", "~"];

async function clients({ client }: World): Promise<string> {
  const made = names.map((name) =>
    client(ApiClientService).createApiClient({ apiClient: { name, type: 3, role: "user" } }),
  );
  return (await Promise.all(made))[0]?.apiClient?.id ?? "";
}

const silenceOf = (name: string) => ({
  matchers: [`source="${name}"`],
  endsAt: BigInt(Date.now() + 3_600_000),
  comment: name,
});

const lists: Readonly<Record<string, Fill>> = {
  "EntityFieldDictionaryService/ListEntityFields": async ({ client }) => {
    const fields = client(EntityFieldDictionaryService);
    await Promise.all(names.map((name) => fields.createEntityField({ entityField: { name } })));
    return {};
  },
  "MetricDictionaryService/ListMetricEntries": async ({ client }) => {
    const metrics = client(MetricDictionaryService);
    await Promise.all(names.map((name) => metrics.createMetricEntry({ metric: { name } })));
    return {};
  },
  "EventFieldDictionaryService/ListEventFields": async ({ client }) => {
    const fields = client(EventFieldDictionaryService);
    await Promise.all(names.map((name) => fields.createEventField({ eventField: { name } })));
    return {};
  },
  "CredentialService/ListCredentials": async ({ client }) => {
    const credentials = client(CredentialService);
    await Promise.all(names.map((name) => credentials.createCredential({ info: { name, type: "teamChat" } })));
    return {};
  },
  "UserGroupService/ListUserGroups": async ({ client }) => {
    const groups = client(UserGroupService);
    await Promise.all(names.map((name) => groups.createUserGroup({ group: { name, cloudRoles: ["user"] } })));
    return {};
  },
  "UserAccountService/ListUserAccounts": async ({ client }) => {
    const accounts = client(UserAccountService);
    const emails = names.map((name) => `${Buffer.from(name).toString("hex")}@example.com`);
    await Promise.all(emails.map((email) => accounts.createUserAccount({ user: { email, password } })));
    return {};
  },
  "ApiClientService/ListApiClients": async (world) => {
    await clients(world);
    return {};
  },
  "ApiClientService/ListApiKeys": async (world) => {
    const clientId = await clients(world);
    const made = names.map(() => world.client(ApiClientService).createApiKey({ clientId, key: {} }));
    await Promise.all(made);
    return { clientId };
  },
  "EventQueryService/GroupEvents": async ({ client }) => {
    const event = { timestamp: BigInt(Date.now()), dimensions: { source: "web-1" } };
    await client(DataReceiverService).putEvents({ events: names.map((name) => ({ ...event, name })) });
    return { labels: ["alertname"], sort: 1 };
  },
  "MetricQueryService/SearchMetrics": async ({ client }) => {
    const nowMs = Date.now();
    const point = { timestamp: BigInt(nowMs), value: 1, dimensions: { source: "web-1" } };
    await client(DataReceiverService).putMetrics({ metrics: names.map((metric) => ({ ...point, metric })) });
    return {
      entityClause: { filter: { field: "source", operation: 11 } },
      timeRange: { start: timestampFromMs(nowMs - 60_000), end: timestampFromMs(nowMs + 60_000) },
      downsample: { aggregator: Aggregator.LAST, period: "1d" },
    };
  },
  "TriggerService/ListTriggers": async ({ client }) => {
    const triggers = client(TriggerService);
    await Promise.all(names.map((name) => triggers.createTrigger({ trigger: { name, type: eventTrigger("x") } })));
    return {};
  },
  "DestinationService/ListDestinations": async ({ client }) => {
    const destinations = client(DestinationService);
    const made = names.map((name) => destinations.createDestination({ destination: { name, type: webhook("x") } }));
    await Promise.all(made);
    return {};
  },
  "RuleService/ListRules": async ({ client }) => {
    const rules = client(RuleService);
    await Promise.all(names.map((name) => rules.createRule({ rule: { name } })));
    return {};
  },
  "SilenceService/ListSilences": async ({ client }) => {
    await Promise.all(names.map((name) => client(SilenceService).createSilence({ silence: silenceOf(name) })));
    return {};
  },
  "DeliveryService/ListDeliveries": async ({ client, db, tenant }) => {
    await client(TriggerService).createTrigger({ trigger: { name: "t", type: eventTrigger("x") } });
    await client(DestinationService).createDestination({ destination: { name: "d", type: webhook("x") } });
    const members = { triggerNames: ["t"], destinationNames: ["d"] };
    // They stay as they are while they are read.
    await client(RuleService).createRule({ rule: { name: "r", enabled: true, delaySec: 86_400n, ...members } });
    const event = { timestamp: BigInt(Date.now()), dimensions: { source: "web-1" } };
    await client(DataReceiverService).putEvents({ events: names.map((name) => ({ ...event, name: `x ${name}` })) });
    await consumed(db, tenant.id);
    return {};
  },
  "DeliveryService/ListDeliveryMembers": async ({ client }) => {
    await client(DestinationService).createDestination({ destination: { name: "d", type: webhook("x") } });
    const rule = { name: "r", enabled: true, matchers: ["alertname=~x .*"], destinationNames: ["d"] };
    await client(RuleService).createRule({ rule: { ...rule, grouping: { waitSec: 0n } } });
    const event = { timestamp: BigInt(Date.now()), dimensions: { source: "web-1" } };
    await client(DataReceiverService).putEvents({ events: names.map((name) => ({ ...event, name: `x ${name}` })) });
    const deliveries = async () => (await client(DeliveryService).listDeliveries({})).deliveries;
    await expect.poll(deliveries, { timeout: 10_000 }).toHaveLength(1);
    return { id: (await deliveries())[0]?.id };
  },
  "AuditLogService/ListAuditEntries": async (world) => {
    await clients(world);
    return {};
  },
};

/** Adds one more item to a list that reports how many it has. */
const more: Readonly<Record<string, (world: World, request: object) => Promise<unknown>>> = {
  "EntityFieldDictionaryService/ListEntityFields": ({ client }) =>
    client(EntityFieldDictionaryService).createEntityField({ entityField: { name: "zz" } }),
  "MetricDictionaryService/ListMetricEntries": ({ client }) =>
    client(MetricDictionaryService).createMetricEntry({ metric: { name: "zz" } }),
  "EventFieldDictionaryService/ListEventFields": ({ client }) =>
    client(EventFieldDictionaryService).createEventField({ eventField: { name: "zz" } }),
  "CredentialService/ListCredentials": ({ client }) =>
    client(CredentialService).createCredential({ info: { name: "zz", type: "teamChat" } }),
  "UserGroupService/ListUserGroups": ({ client }) =>
    client(UserGroupService).createUserGroup({ group: { name: "zz", cloudRoles: ["user"] } }),
  "UserAccountService/ListUserAccounts": ({ client }) =>
    client(UserAccountService).createUserAccount({ user: { email: "zz@example.com", password } }),
  "ApiClientService/ListApiClients": ({ client }) =>
    client(ApiClientService).createApiClient({ apiClient: { name: "zz", type: 3, role: "user" } }),
  "ApiClientService/ListApiKeys": ({ client }, request) =>
    client(ApiClientService).createApiKey({ ...request, key: {} }),
  "TriggerService/ListTriggers": ({ client }) =>
    client(TriggerService).createTrigger({ trigger: { name: "zz", type: eventTrigger("x") } }),
  "DestinationService/ListDestinations": ({ client }) =>
    client(DestinationService).createDestination({ destination: { name: "zz", type: webhook("x") } }),
  "RuleService/ListRules": ({ client }) => client(RuleService).createRule({ rule: { name: "zz" } }),
  "SilenceService/ListSilences": ({ client }) => client(SilenceService).createSilence({ silence: silenceOf("zz") }),
  "DeliveryService/ListDeliveries": async ({ client, db, tenant }) => {
    await client(DataReceiverService).putEvents({
      events: [{ timestamp: BigInt(Date.now()), dimensions: { source: "web-1" }, name: "x zz" }],
    });
    await consumed(db, tenant.id);
  },
  "EventQueryService/GroupEvents": ({ client }) =>
    client(DataReceiverService).putEvents({
      events: [{ timestamp: BigInt(Date.now()), dimensions: { source: "web-1" }, name: "zz" }],
    }),
  "AuditLogService/ListAuditEntries": ({ client }) =>
    client(ApiClientService).createApiClient({ apiClient: { name: "zz", type: 3, role: "user" } }),
};

const tokenLists = allMethods.filter(({ input }) => input.fields.some(({ name }) => name === "page_token"));
const { tenant } = await newWorld(server);
const built = await Promise.all(tokenLists.map((method) => isBuilt(server, tenant.headers, method)));

interface Page {
  items: string[];
  next: string;
  /** Undefined in answers that do not count. */
  total: bigint | undefined;
}

async function page(world: World, method: DescMethod, request: object): Promise<Page> {
  const answer = (await callRpc(server.target, world.tenant.headers, method, request)) as Message &
    Record<string, unknown>;
  const list = method.output.fields.find(({ fieldKind }) => fieldKind === "list");
  if (list?.message === undefined) throw new Error(`${method.output.typeName} has no list`);
  const { message } = list;
  const items = (answer[list.localName] as Message[]).map((item) => JSON.stringify(toJson(message, item)));
  return { items, next: answer.nextPageToken as string, total: answer.totalCount as bigint | undefined };
}

test("every row of lists names an RPC", () => {
  const known = tokenLists.map(callName);
  expect(Object.keys(lists).filter((name) => !known.includes(name))).toEqual([]);
});

test.each(tokenLists.filter((_method, i) => built[i]).map((method) => ({ name: callName(method), method })))(
  "$name answers the same on pages of every size as whole, and takes no token of another tenant, no damaged one and no negative size",
  async ({ name, method }) => {
    const fill = lists[name];
    expect(fill, `${name} is built: add its row to lists`).toBeDefined();
    const world = await newWorld(server);
    const request = (await fill?.(world)) ?? {};
    const whole = await page(world, method, { ...request, pageSize: 1000 });
    const counts = method.output.fields.some(({ name }) => name === "total_count");
    expect(whole).toMatchObject({ next: "", total: counts ? BigInt(whole.items.length) : undefined });
    expect(whole.items.length).toBeGreaterThanOrEqual(names.length);
    expect(new Set(whole.items).size).toBe(whole.items.length);
    // A list with the default entries of a dictionary has hundreds of pages of one or two.
    const sizes = whole.items.length > 100 ? [7, 100] : [1, 2, 7, 100];
    for (const pageSize of sizes) {
      const found: string[] = [];
      let pageToken = "";
      do {
        const part = await page(world, method, { ...request, pageSize, pageToken });
        expect(part.items.length).toBe(Math.min(pageSize, whole.items.length - found.length));
        expect(part.total).toBe(whole.total);
        found.push(...part.items);
        pageToken = part.next;
      } while (pageToken !== "");
      expect(found).toEqual(whole.items);
    }
    const { next: pageToken } = await page(world, method, { ...request, pageSize: 2 });
    const codeOf = (of: World, wrong: object) =>
      page(of, method, { ...request, pageSize: 2, ...wrong }).catch(({ code }) => code);
    expect(await codeOf(world, { pageToken: `${pageToken}A` })).toBe(3);
    expect(await codeOf(world, { pageSize: -1 })).toBe(3);
    // A stranger does not find what the list is of, or may not use the token.
    expect([3, 5]).toContain(await codeOf(await newWorld(server), { pageToken }));
    // What a message has said stays as it is: nothing adds to it.
    if (!counts || name === "DeliveryService/ListDeliveryMembers") return;
    // Counted for the first page alone.
    expect(more).toHaveProperty([name]);
    const first = await page(world, method, { ...request, pageSize: 2 });
    await more[name]?.(world, request);
    const second = await page(world, method, { ...request, pageSize: 2, pageToken: first.next });
    expect(second.total).toBe(first.total);
    expect((await page(world, method, { ...request, pageSize: 2 })).total).toBe((first.total ?? 0n) + 1n);
  },
);
