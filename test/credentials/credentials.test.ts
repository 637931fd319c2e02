import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { releaseCredentials, useCredential } from "../../src/credentials/used-by.ts";
import { transaction } from "../../src/db/transaction.ts";
import { protocols, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
let tenant: TestTenant;
let json: ReturnType<typeof v1>;
let grpc: ReturnType<typeof createClient<typeof CredentialService>>;

beforeAll(async () => {
  tenant = await testTenant(sql);
  json = v1(server.url, tenant.headers);
  grpc = createClient(CredentialService, transport(server.target, "grpc", tenant.headers));
});

const path = "/v1/credentials";
const unknown = "01999999-9999-7999-8999-999999999999";
const teamChat = { info: { name: "chat", type: "teamChat" }, secrets: { token: "t" } };
const noUses = { collections: { ids: [] }, destinations: { ids: [] } };

async function create(body: object = teamChat): Promise<string> {
  const answer = await json("POST", path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body.info.id;
}

/** The same refusal over /v1, with 500 in place of 400 and 401, and over gRPC. */
async function expectInvalid(method: string, at: string, body: object, field: string, text?: string) {
  const answer = await json(method, at, body);
  expect(answer).toMatchObject({ status: 500, body: { code: 3 } });
  expect(answer.body.details[0].fieldViolations.map((each: { field: string }) => each.field)).toContain(field);
  if (text !== undefined) expect(answer.body.message).toContain(text);
  const call =
    method === "POST"
      ? grpc.createCredential(body)
      : grpc.replaceCredential({ id: at.split("/").at(-1) ?? "", ...body });
  await expect(call).rejects.toMatchObject({ code: 3 });
}

describe("each type", () => {
  test.each([
    ["usernamePassword", { username: "u", password: "p" }],
    ["officeSuite", { clientId: "i", clientSecret: "s" }],
    ["officeSuite", { clientID: "i", clientSecret: "s" }],
    ["incidentPaging", { routingKey: "r" }],
    ["teamChat", { token: "t" }],
    ["itsmOAuth", { clientId: "i", clientSecret: "s" }],
    ["videoMeeting", { accountId: "a", clientId: "i", clientSecret: "s" }],
    ["videoMeeting", { accountId: "a", clientID: "i", clientSecret: "s" }],
    ["videoMeeting", { apiKey: "k", apiSecret: "s" }],
    ["teamChat", { token: "x".repeat(8192) }],
    ["teamChat", { token: "😀".repeat(8192) }],
  ])("%s takes its keys", async (type, secrets) => {
    expect((await json("POST", path, { info: { name: "a", type }, secrets })).status).toBe(200);
    await grpc.createCredential({ info: { name: "a", type }, secrets: secrets as Record<string, string> });
  });

  test.each([
    ["usernamePassword", { username: "u" }, 'secrets["password"]', "is required for usernamePassword"],
    ["usernamePassword", { username: "u", password: "" }, 'secrets["password"]', "must not be empty"],
    [
      "usernamePassword",
      { username: "u", password: "p", domain: "d" },
      'secrets["domain"]',
      "takes username, password",
    ],
    ["officeSuite", { clientSecret: "s" }, 'secrets["clientId"]', "is required"],
    ["officeSuite", { clientId: "i", clientID: "j", clientSecret: "s" }, 'secrets["clientID"]', "beside clientId"],
    ["incidentPaging", { token: "t" }, 'secrets["routingKey"]', "is required"],
    ["teamChat", { token: "x".repeat(8193) }, 'secrets["token"]', "8192"],
    ["teamChat", { token: "a\0b" }, 'secrets["token"]', "NUL"],
    ["teamChat", { token: "t", constructor: "c" }, 'secrets["constructor"]', "is unknown"],
    ["itsmOAuth", { clientId: "i" }, 'secrets["clientSecret"]', "is required"],
    [
      "videoMeeting",
      { clientId: "i", clientSecret: "s" },
      "secrets",
      "accountId, clientId, clientSecret or else apiKey",
    ],
    ["videoMeeting", { apiKey: "k", apiSecret: "s", accountId: "a" }, "secrets", "exactly the keys"],
    ["videoMeeting", { apiKey: "k" }, "secrets", "exactly the keys"],
  ])("%s refuses other keys and values: %j", async (type, secrets, field, text) => {
    await expectInvalid("POST", path, { info: { name: "a", type }, secrets }, field, text);
  });

  test("may be stored without secrets", async () => {
    await create({ info: { name: "a", type: "videoMeeting" } });
    await create({ info: { name: "a", type: "videoMeeting" }, secrets: {} });
  });
});

describe("a create", () => {
  test("answers all but the secrets, with what it was given and no one who uses it", async () => {
    const info = {
      name: "Ärger im Büro",
      type: "teamChat",
      description: "d\ne",
      tags: ["b", "a", "b"],
      allowedApiClients: ["x"],
      allowedHosts: ["*.example.com", "chat.example.org"],
    };
    const answer = await json("POST", path, {
      info: { ...info, usedBy: { destinations: { ids: ["x"] } } },
      secrets: { token: "t" },
    });
    expect(answer).toMatchObject({ status: 200 });
    const trouble = "Slack takes no such token: a bot's begins with xoxb-";
    expect(answer.body).toEqual({
      info: {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        info: { ...info, boundHosts: [], trouble, usedBy: noUses },
      },
    });
    const { credentials } = (await json("GET", `${path}?pageSize=1000`)).body;
    expect(credentials).toContainEqual(answer.body.info);
  });

  test("of a name that another one has makes one more", async () => {
    expect(await create()).not.toBe(await create());
  });

  test.each([
    ["no info", {}, "info"],
    ["no name", { info: { type: "teamChat" } }, "info.name"],
    ["a name of 256 characters", { info: { name: "n".repeat(256), type: "teamChat" } }, "info.name"],
    ["a control character in the name", { info: { name: "a\nb", type: "teamChat" } }, "info.name"],
    ["no type", { info: { name: "a" } }, "info.type"],
    [
      "a long description",
      { info: { name: "a", type: "teamChat", description: "é".repeat(2049) } },
      "info.description",
    ],
    ["101 tags", { info: { name: "a", type: "teamChat", tags: Array(101).fill("t") } }, "info.tags"],
    ["an empty tag", { info: { name: "a", type: "teamChat", tags: [""] } }, "info.tags[0]"],
  ])("is refused with %s", async (_what, body, field) => {
    await expectInvalid("POST", path, body, field);
  });

  test("of an unknown type is refused with a list of those that are known", async () => {
    const types = ["usernamePassword", "officeSuite", "incidentPaging", "teamChat", "itsmOAuth", "videoMeeting"];
    const body = { info: { name: "a", type: "carrierPigeon" } };
    await expectInvalid("POST", path, body, "info.type", types.join(", "));
  });

  test.each(protocols)("works over %s", async (protocol) => {
    const client = createClient(CredentialService, transport(server.target, protocol, tenant.headers));
    const { info } = await client.createCredential(teamChat);
    expect(info).toMatchObject({ info: { name: "chat", type: "teamChat", usedBy: { collections: { ids: [] } } } });
    const id = info?.id ?? "";
    await client.replaceCredential({ id, info: { name: "chats", type: "teamChat" } });
    const { credentials, totalCount } = await client.listCredentials({ pageSize: 1000 });
    expect(credentials.find((each) => each.id === id)?.info?.name).toBe("chats");
    expect(totalCount).toBe(BigInt(credentials.length));
    expect(await client.deleteCredential({ id })).toMatchObject({ id });
    await expect(client.deleteCredential({ id })).rejects.toMatchObject({ code: 5 });
  });
});

describe("the list", () => {
  test("is empty at first", async () => {
    const list = v1(server.url, (await testTenant(sql)).headers);
    expect((await list("GET", path)).body).toEqual({ credentials: [], nextPageToken: "", totalCount: "0" });
  });

  test.each(["pageSize=-1", "pageSize=x", "pageToken=x", "pageToken=AAAA"])("refuses %s", async (query) => {
    expect(await json("GET", `${path}?${query}`)).toMatchObject({ status: 500, body: { code: 3 } });
  });
});

describe("a replacement", () => {
  test("replaces all that is known of a credential", async () => {
    const id = await create({
      info: {
        name: "a",
        type: "teamChat",
        description: "d",
        tags: ["t"],
        allowedApiClients: ["c"],
        allowedHosts: ["a.b"],
      },
      secrets: { token: "t" },
    });
    const info = { name: "b", type: "itsmOAuth", description: "", tags: [], allowedApiClients: [], allowedHosts: [] };
    const answer = await json("PUT", `${path}/${id}`, {
      info: { name: "b", type: "itsmOAuth" },
      secrets: { clientID: "i", clientSecret: "s" },
    });
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body).toEqual({ info: { id, info: { ...info, boundHosts: [], trouble: "", usedBy: noUses } } });
  });

  test.each([{}, { secrets: {} }])("without secrets (%j) to a type with other keys is refused", async (secrets) => {
    const id = await create();
    const info = { name: "a", type: "usernamePassword" };
    await expectInvalid(
      "PUT",
      `${path}/${id}`,
      { info, ...secrets },
      "secrets",
      "usernamePassword takes username, password",
    );
    const none = await create({ info: { name: "a", type: "teamChat" } });
    await expectInvalid("PUT", `${path}/${none}`, { info, ...secrets }, "secrets");
  });

  test("without secrets to a type with the same keys keeps them", async () => {
    const id = await create({
      info: { name: "a", type: "officeSuite" },
      secrets: { clientId: "i", clientSecret: "s" },
    });
    expect((await json("PUT", `${path}/${id}`, { info: { name: "a", type: "itsmOAuth" } })).status).toBe(200);
  });

  test("with secrets that do not fit is refused", async () => {
    const id = await create();
    const info = { name: "a", type: "teamChat" };
    await expectInvalid("PUT", `${path}/${id}`, { info, secrets: { password: "p" } }, 'secrets["token"]');
    await expectInvalid("PUT", `${path}/${id}`, { info: { name: "a", type: "x" } }, "info.type");
    await expectInvalid("PUT", `${path}/${id}`, {}, "info");
  });

  test("takes what a list has answered", async () => {
    const id = await create();
    const { credentials } = (await json("GET", `${path}?pageSize=1000`)).body;
    const stored = credentials.find((each: { id: string }) => each.id === id);
    expect((await json("PUT", `${path}/${id}`, stored)).body).toEqual({ info: stored });
  });

  test("of an id that differs between path and body is refused", async () => {
    const id = await create();
    const answer = await json("PUT", `${path}/${id}`, { ...teamChat, id: unknown });
    expect(answer).toMatchObject({ status: 500, body: { code: 3 } });
  });
});

describe("a deletion", () => {
  test("answers the id", async () => {
    const id = await create();
    expect(await json("DELETE", `${path}/${id}`)).toMatchObject({ status: 200, body: { id } });
    expect(await json("DELETE", `${path}/${id}`)).toMatchObject({ status: 404, body: { code: 5 } });
  });

  test("of a credential in use is refused, with code 9 and who uses it, until no one does; so is another type", async () => {
    const id = await create();
    const uses = [
      { kind: "destination", id: "team chat" },
      { kind: "destination", id: "other chat" },
      { kind: "collection", id: "c1" },
    ] as const;
    for (const use of [...uses, uses[0]]) {
      await transaction(sql, (tx) => useCredential(tx, tenant.id, id, use, "credentialId", async () => undefined));
    }
    const usedBy = { collections: { ids: ["c1"] }, destinations: { ids: ["other chat", "team chat"] } };
    const replaced = await json("PUT", `${path}/${id}`, teamChat);
    expect(replaced.body.info.info.usedBy).toEqual(usedBy);
    const typed = await json("PUT", `${path}/${id}`, {
      info: { name: "chat", type: "incidentPaging" },
      secrets: { routingKey: "r" },
    });
    expect(typed).toMatchObject({ status: 400, body: { code: 9 } });
    const { credentials } = (await json("GET", `${path}?pageSize=1000`)).body;
    expect(credentials.find((each: { id: string }) => each.id === id).info.usedBy).toEqual(usedBy);
    const refused = await json("DELETE", `${path}/${id}`);
    expect(refused).toMatchObject({ status: 400, body: { code: 9 } });
    expect(refused.body.message).toContain('destination "other chat"');
    await expect(grpc.deleteCredential({ id })).rejects.toMatchObject({ code: 9 });
    for (const use of uses) await transaction(sql, (tx) => releaseCredentials(tx, tenant.id, use));
    expect((await json("DELETE", `${path}/${id}`)).status).toBe(200);
  });

  test("and a first use at the same time never leave a use of nothing", async () => {
    for (let round = 0; round < 30; round += 1) {
      const id = await create();
      const use = { kind: "destination", id: `d${round}` } as const;
      const [gone, used] = await Promise.allSettled([
        grpc.deleteCredential({ id }),
        transaction(sql, (tx) => useCredential(tx, tenant.id, id, use, "credentialId", async () => undefined)),
      ]);
      expect([gone.status, used.status].sort()).toEqual(["fulfilled", "rejected"]);
      if (gone.status === "rejected") expect(gone.reason).toMatchObject({ code: 9 });
      if (used.status === "rejected") expect(used.reason).toMatchObject({ code: 3 });
    }
  });
});

describe("codes and statuses", () => {
  test.each([unknown, "no-uuid"])("an unknown id, such as %s, answers 404 with code 5", async (id) => {
    expect(await json("PUT", `${path}/${id}`, teamChat)).toMatchObject({ status: 404, body: { code: 5 } });
    expect(await json("DELETE", `${path}/${id}`)).toMatchObject({ status: 404, body: { code: 5 } });
    await expect(grpc.replaceCredential({ id, ...teamChat })).rejects.toMatchObject({ code: 5 });
    await expect(grpc.deleteCredential({ id })).rejects.toMatchObject({ code: 5 });
  });

  test.each([
    ["GET", `${path}/${unknown}`],
    ["POST", `${path}/${unknown}`],
    ["PATCH", `${path}/${unknown}`],
    ["DELETE", path],
    ["PUT", path],
  ])("%s %s, which the path does not know, answers 501 with code 12", async (method, at) => {
    expect(await json(method, at)).toMatchObject({ status: 501, body: { code: 12 } });
  });

  test.each(["{", "[]", '{"info":{"name":5}}', '{"info":', "nothing", '{"unknown":1}'])(
    "malformed JSON answers 500 with code 3: %s",
    async (text) => {
      expect(await json("POST", path, text)).toMatchObject({ status: 500, body: { code: 3 } });
      expect(await json("PUT", `${path}/${unknown}`, text)).toMatchObject({ status: 500, body: { code: 3 } });
    },
  );

  test.each([
    ['{"token":4711}', "expected a string, found a number"],
    ['{"token":["4711"]}', "expected a string, found a list"],
    ['{"token":geheim}', "expected a string, found something else"],
    ['{"token":"a"geheim"}', "expected a comma or }, found something else"],
    ['"geheim"', "expected an object, found a string"],
  ])("what is wrong with secrets is told by its place and kind, never by its text: %s", async (secrets, text) => {
    const body = `{"info":{"name":"a","type":"teamChat"},"secrets":${secrets}}`;
    const { message } = (await json("POST", path, body)).body;
    expect(message).toMatch(/^secrets(\["token"\])?: .* \(byte \d+\)$/);
    expect(message).toContain(text);
    expect(message).not.toMatch(/4711|geheim/);
  });

  test("a body that is too large stays 413, one of another type 415", async () => {
    const large = JSON.stringify({ info: { name: "a", type: "teamChat", description: "x".repeat(4 << 20) } });
    expect(await json("POST", path, large)).toMatchObject({ status: 413, body: { code: 8 } });
    const answer = await fetch(server.url + path, {
      method: "POST",
      headers: { ...tenant.headers, "content-type": "text/plain" },
      body: JSON.stringify(teamChat),
    });
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject({ code: 3 });
  });
});
