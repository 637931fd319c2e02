import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { destinationsPath, eventJson, eventTrigger, rulesPath, triggersPath, webhook, webhookJson } from "./samples.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const json = v1(server.url, tenant.headers);
const way = transport(server.target, "grpc", tenant.headers);
const rules = createClient(RuleService, way);

/** Makes triggers t1 to t3 and destinations d1 to d3. */
async function fill(to: typeof way) {
  for (const i of [1, 2, 3]) {
    await createClient(TriggerService, to).createTrigger({ trigger: { name: `t${i}`, type: eventTrigger("x") } });
    await createClient(DestinationService, to).createDestination({
      destination: { name: `d${i}`, type: webhook("x") },
    });
  }
}
await fill(way);

let made = 0;
let name = "";
let path = "";
beforeEach(() => {
  made += 1;
  name = `rule ${made}`;
  path = `${rulesPath}/${encodeURIComponent(name)}`;
});
const refused = (message: string) => ({ status: 400, body: { code: 3, message: expect.stringContaining(message) } });

const full = {
  description: "what it is for",
  enabled: true,
  triggerNames: ["t2", "t1"],
  destinationNames: ["d3", "d1"],
  message: "{{event.name}} on {{entity.name}}",
  repeat: true,
  repeatInterval: "0",
  delaySec: "86400",
  sendUpdates: true,
  tags: ["a", "b"],
  muteDuringMaintenance: true,
  repeatWhile: "REPEAT_WHILE_UNSPECIFIED",
};
const empty = {
  description: "",
  enabled: false,
  triggerNames: [],
  destinationNames: [],
  message: "",
  repeat: false,
  repeatInterval: "3600",
  delaySec: "0",
  sendUpdates: false,
  repeatWhile: "REPEAT_WHILE_UNSPECIFIED",
  tags: [],
  muteDuringMaintenance: false,
  matchers: [],
  grouping: null,
  recentNotificationCount: "0",
  trouble: expect.any(String),
  etag: expect.stringMatching(/^[\w-]{16}$/),
};

describe("a new rule", () => {
  test("answers what was sent, names in their order, and is shown so", async () => {
    const { status, body } = await json("POST", rulesPath, { name, ...full });
    expect({ status, body }).toEqual({ status: 200, body: { rule: { ...empty, name, ...full } } });
    expect((await json("GET", path)).body).toEqual(body);
  });

  test("needs a name alone: it is disabled, and repeats after an hour when it repeats", async () => {
    const { body } = await json("POST", rulesPath, { name });
    expect(body.rule).toEqual({ name, ...empty });
  });

  test.each([[1800], ["1800"]])("takes %j as repeatInterval, and shows it as text", async (repeatInterval) => {
    const { body } = await json("POST", rulesPath, { name, repeatInterval, delaySec: 5 });
    expect(body.rule).toMatchObject({ repeatInterval: "1800", delaySec: "5" });
  });

  test("counts a name that stands twice once", async () => {
    const { body } = await json("POST", rulesPath, { name, triggerNames: ["t2", "t1", "t2"] });
    expect(body.rule.triggerNames).toEqual(["t2", "t1"]);
  });

  test("with a name that is taken is 409, and changes nothing", async () => {
    await json("POST", rulesPath, { name, triggerNames: ["t1"] });
    const answer = await json("POST", rulesPath, { name, triggerNames: ["t2"] });
    expect(answer).toMatchObject({ status: 409, body: { code: 6 } });
    expect((await json("GET", path)).body.rule.triggerNames).toEqual(["t1"]);
  });

  test.each([
    [{ name: "" }, "name: is required"],
    [{ delaySec: 86_401 }, "delaySec: must be "],
    [{ delaySec: -1 }, "delaySec: must be "],
    [{ repeatInterval: -1 }, "repeatInterval: must be "],
    [{ triggerNames: ["t1", "nope"] }, 'triggerNames[1]: there is no trigger named "nope"'],
    [{ destinationNames: ["nope", "d1", "no"] }, 'destinationNames[2]: there is no destination named "no"'],
    [{ triggerNames: [""] }, "triggerNames[0]: must not be empty"],
    [{ message: "x".repeat(65_537) }, "message: "],
    [{ message: "fine\n{{#a}}" }, 'message: is no Mustache template: unclosed section "a" at line 2, column 7'],
    [{ enabled: "yes" }, "enabled: "],
    [{ repeatWhile: "REPEAT_WHILE_OPEN" }, "repeatWhile: needs repeat"],
    [{ repeatWhile: 3 }, "repeatWhile: must be one of "],
    [{ repeat: true, repeatInterval: 0, repeatWhile: 1 }, "repeatInterval: must be at least 1 beside repeatWhile"],
  ])("with %j is refused with the place, and nothing is stored", async (change, message) => {
    expect(await json("POST", rulesPath, { name, ...change })).toMatchObject(refused(message));
    expect(await json("GET", path)).toMatchObject({ status: 404 });
  });

  test("does not find the triggers and destinations of another tenant", async () => {
    const other = v1(server.url, (await testTenant(server.database.sql)).headers);
    expect(await other("POST", rulesPath, { name, triggerNames: ["t1"] })).toMatchObject(refused("triggerNames[0]"));
  });
});

describe("an update", () => {
  beforeEach(async () => {
    await json("POST", rulesPath, { name, ...full });
  });

  test.each([
    [{}],
    [{ enabled: false }],
    [{ repeat: true, repeatInterval: "60", repeatWhile: "REPEAT_WHILE_UNACKNOWLEDGED" }],
    [{ triggerNames: ["t3"] }],
    [{ triggerNames: [], destinationNames: ["d1", "d2", "d3"] }],
    [{ description: "", message: "", tags: [] }],
    [{ repeat: false, repeatInterval: "7", delaySec: "0", sendUpdates: false, muteDuringMaintenance: false }],
  ])("changes %j and nothing else", async (change) => {
    const { body, status } = await json("PUT", path, change);
    expect(status).toBe(200);
    expect(body.rule).toEqual({ ...empty, name, ...full, ...change });
    expect((await json("GET", path)).body).toEqual(body);
  });

  test("a null goes back to the default", async () => {
    const { body } = await json("PUT", path, { repeatInterval: null, triggerNames: null, message: null });
    expect(body.rule).toMatchObject({
      repeatInterval: "3600",
      triggerNames: [],
      message: "",
      destinationNames: ["d3", "d1"],
    });
  });

  test("over gRPC without a mask changes what is set", async () => {
    const { rule } = await rules.updateRule({ rule: { name, enabled: false, message: "new" } });
    expect(rule).toMatchObject({ enabled: true, message: "new", triggerNames: ["t2", "t1"] });
  });

  test.each([
    [{ name: "other" }, "name: differs"],
    [{ delaySec: 86_401 }, "delaySec: "],
    [{ triggerNames: ["t1", "nope"] }, "triggerNames[1]: "],
    [{ message: "{{> partial}}" }, "message: has a partial"],
  ])("with %j is refused, and changes nothing", async (change, message) => {
    expect(await json("PUT", path, { description: "after", ...change })).toMatchObject(refused(message));
    expect((await json("GET", path)).body.rule).toMatchObject(full);
  });

  test("of a rule that is not there is 404", async () => {
    expect(await json("PUT", `${rulesPath}/none`, { enabled: true })).toMatchObject({ status: 404, body: { code: 5 } });
  });

  test("several at once leave the names of one of them, whole", async () => {
    const sets = [["t1"], ["t2", "t3"], ["t3", "t2", "t1"]];
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => rules.updateRule({ rule: { name, triggerNames: sets[i % 3] as string[] } })),
    );
    expect(sets).toContainEqual((await rules.getRule({ name })).rule?.triggerNames);
  });
});

test("a deletion answers the deleted rule, and frees its triggers and destinations", async () => {
  const triggers = createClient(TriggerService, way);
  await triggers.createTrigger({ trigger: { name: `of ${name}`, type: eventTrigger("x") } });
  await json("POST", rulesPath, { name, ...full, triggerNames: [`of ${name}`, "t1"] });
  const { status, body } = await json("DELETE", path);
  expect({ status, rule: body.rule }).toMatchObject({
    status: 200,
    rule: { name, ...full, triggerNames: [`of ${name}`, "t1"] },
  });
  expect(await json("DELETE", path)).toMatchObject({ status: 404, body: { code: 5 } });
  await triggers.deleteTrigger({ name: `of ${name}` });
});

test("every change of triggers, destinations and rules raises the version that tells all servers, a failed one does not", async () => {
  const own = await testTenant(server.database.sql);
  const call = v1(server.url, own.headers);
  const version = async () => {
    const [row] = await server.database.sql<{ version: bigint }[]>`
      select rules_version as version from tenant_state where tenant_id = ${own.id}`;
    return row?.version ?? 0n;
  };
  const changes: [string, string, object?][] = [
    ["POST", triggersPath, { name: "t", type: eventJson("x") }],
    ["PUT", `${triggersPath}/t`, { description: "d" }],
    ["POST", destinationsPath, { name: "d", type: webhookJson("x") }],
    ["PUT", `${destinationsPath}/d`, { type: webhookJson("y") }],
    ["POST", rulesPath, { name: "r" }],
    ["PUT", `${rulesPath}/r`, { enabled: true }],
    ["DELETE", `${rulesPath}/r`],
    ["DELETE", `${destinationsPath}/d`],
    ["DELETE", `${triggersPath}/t`],
  ];
  for (const [i, [method, path, body]] of changes.entries()) {
    expect(await version()).toBe(BigInt(i));
    expect((await call(method, path, body)).status).toBe(200);
  }
  expect((await call("POST", rulesPath, { name: "r", triggerNames: ["none"] })).status).toBe(400);
  expect((await call("DELETE", `${triggersPath}/t`)).status).toBe(404);
  expect(await version()).toBe(BigInt(changes.length));
});

test("a trigger that is deleted while a rule begins to use it is gone, or in use: never both", async () => {
  const triggers = createClient(TriggerService, way);
  for (let i = 0; i < 20; i++) {
    const trigger = `race ${i}`;
    await triggers.createTrigger({ trigger: { name: trigger, type: eventTrigger("x") } });
    const [used, gone] = await Promise.allSettled([
      rules.createRule({ rule: { name: trigger, triggerNames: [trigger] } }),
      triggers.deleteTrigger({ name: trigger }),
    ]);
    expect([used.status, gone.status].sort()).toEqual(["fulfilled", "rejected"]);
    const lost = [used, gone].find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(lost.reason).toMatchObject({ code: used.status === "rejected" ? 3 : 9 });
  }
});

describe("the list", async () => {
  const own = await testTenant(server.database.sql);
  const mine = transport(server.target, "grpc", own.headers);
  await fill(mine);
  const service = createClient(RuleService, mine);
  const all: Parameters<typeof service.createRule>[0]["rule"][] = [
    {
      name: "A",
      description: "Routers",
      enabled: true,
      triggerNames: ["t1", "t2"],
      destinationNames: ["d1"],
      repeat: true,
    },
    {
      name: "B",
      message: "Please CALL",
      tags: ["Night", "net"],
      triggerNames: ["t2"],
      repeatInterval: 60n,
      delaySec: 5n,
    },
    { name: "C", enabled: true, sendUpdates: true, tags: ["net"], destinationNames: ["d1", "d2"], repeatInterval: 60n },
  ];
  for (const rule of all) await service.createRule({ rule: rule as object });

  test.each([
    ["", "ABC"],
    ["?name=b", "B"],
    ["?description=ROUT", "A"],
    ["?enabled=true", "AC"],
    ["?enabled=false", "B"],
    ["?triggerNames=T", "AB"],
    ["?triggerNames=t1&triggerNames=2", "A"],
    ["?triggerNames=t1&triggerNames=t3", ""],
    ["?destinationNames=D1", "AC"],
    ["?destinationNames=1&destinationNames=2", "C"],
    ["?message=call", "B"],
    ["?repeat=true", "A"],
    ["?repeat=false", "BC"],
    ["?repeatInterval=60", "BC"],
    ["?repeatInterval=3600", "A"],
    ["?repeatInterval=0", ""],
    ["?delaySec=5", "B"],
    ["?delaySec=0", "AC"],
    ["?delaySec=9007199254740993", ""],
    ["?sendUpdates=true", "C"],
    ["?sendUpdates=false", "AB"],
    ["?tags=NET", "BC"],
    ["?tags=net&tags=nig", "B"],
    ["?enabled=true&repeat=true", "A"],
    ["?enabled=true&repeat=false&tags=net&destinationNames=d2&repeatInterval=60&sendUpdates=true&delaySec=0", "C"],
    ["?enabled=true&message=call", ""],
  ])("of %s", async (query, names) => {
    const { status, body } = await v1(server.url, own.headers)("GET", `${rulesPath}${query}`);
    expect(status).toBe(200);
    expect(body.rules.map((rule: { name: string }) => rule.name).join("")).toBe(names);
    expect(body.totalCount).toBe(String(names.length));
  });

  test.each([
    "?enabled=true&enabled=true",
    "?enabled=maybe",
    "?repeatInterval=x",
    "?name=a&name=b",
    "?pageSize=-1",
    "?colour=red",
  ])("of %s is refused", async (query) => {
    expect(await json("GET", `${rulesPath}${query}`)).toMatchObject({ status: 400, body: { code: 3 } });
  });
});
