import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { type Answerer, answering, misbehaving, type Received } from "../support/receivers.ts";
import { type Site, secrets, site, type TypeInit } from "./kinds.ts";
import { eventId, notificationOf } from "./notifications.ts";

type Row = Record<string, string>;

/** A system with a table of incidents and a token endpoint, as strict as its documents. */
interface Instance {
  rows: Row[];
  /** The access token that is good by now; undefined: log-in by password. */
  accessToken: string | undefined;
  refreshToken: string;
  /** Exchanges the refresh token for a new one each time. */
  rotates: boolean;
  /** What the password grant is answered. */
  passwordGrant: boolean;
  answer: Answerer;
}

const basic = `Basic ${Buffer.from(`belfry:${secrets.password}`).toString("base64")}`;

function instance(): Instance {
  let issued = 0;
  const own: Instance = {
    rows: [],
    accessToken: undefined,
    refreshToken: secrets.refreshToken,
    rotates: false,
    passwordGrant: false,
    answer(request, response) {
      const say = (status: number, body: object) => void response.writeHead(status).end(JSON.stringify(body));
      const failure = (status: number, message: string) => say(status, { error: { message }, status: "failure" });
      const url = new URL(request.path, "http://instance");
      if (url.pathname === "/oauth_token.do") return token(request, say);
      const wanted = own.accessToken === undefined ? basic : `Bearer ${own.accessToken}`;
      if (request.headers.authorization !== wanted) return failure(401, "User Not Authenticated");
      const [, sysId] = /^\/api\/now\/table\/incident(?:\/(.+))?$/.exec(url.pathname) ?? [];
      if (request.method === "GET") {
        const query = url.searchParams.get("sysparm_query") ?? "";
        const [, correlation] = /^correlation_id=([^^]+)\^ORDERBYDESCsys_created_on$/.exec(query) ?? [];
        if (correlation === undefined) return failure(400, `a bad query: ${query}`);
        return say(200, { result: own.rows.filter((row) => row.correlation_id === correlation).slice(0, 1) });
      }
      const fields = JSON.parse(request.body) as Row;
      const [, tooLong] = [["short_description", 160] as const, ["correlation_id", 100] as const].find(
        ([name, max]) => [...(fields[name] ?? "")].length > max,
      ) ?? [undefined, undefined];
      if (tooLong !== undefined) return failure(400, `longer than ${tooLong}`);
      if (request.method === "POST") {
        const row = { ...fields, sys_id: `sys${own.rows.length + 1}`, number: `INC${own.rows.length + 1}` };
        own.rows.push(row);
        return say(201, { result: row });
      }
      const row = own.rows.find((each) => each.sys_id === sysId);
      if (row === undefined) return failure(404, "No Record found");
      Object.assign(row, fields);
      return say(200, { result: row });
    },
  };
  function token({ body, headers }: Received, say: (status: number, body: object) => void) {
    expect(headers["content-type"]).toBe("application/x-www-form-urlencoded");
    const form = new URLSearchParams(body);
    const { grant_type, refresh_token, client_id, client_secret, username, password } = Object.fromEntries(form);
    const known = client_id === "belfry-client" && client_secret === secrets.clientSecret;
    const byRefresh = grant_type === "refresh_token" && refresh_token === own.refreshToken;
    const byPassword =
      own.passwordGrant && grant_type === "password" && username === "belfry" && password === secrets.password;
    if (!known || !(byRefresh || byPassword)) return say(400, { error: "invalid_grant" });
    own.accessToken = `access-t0ken-${++issued}`;
    if (own.rotates || byPassword) own.refreshToken = `r3fresh-t0ken-${issued + 1}`;
    say(200, {
      access_token: own.accessToken,
      refresh_token: own.refreshToken,
      expires_in: 1800,
      token_type: "Bearer",
    });
  }
  return own;
}

let place: Site;
let system: Instance;
beforeEach(async () => {
  place = await site();
  system = instance();
  place.receiver.answer(system.answer);
});
afterEach(() => place[Symbol.asyncDispose]());

const itsm = (value: object = {}): TypeInit => ({
  case: "itsm",
  value: {
    baseUrl: `${place.receiver.url}/`,
    shortDescription: "{{{event.name}}} on {{{entity.name}}}",
    authorization: { case: "basic", value: { username: "belfry", password: secrets.password } },
    ...value,
  },
});
const withOAuth = (value: object = {}) =>
  itsm({
    authorization: {
      case: "oauth",
      value: {
        clientId: "belfry-client",
        clientSecret: secrets.clientSecret,
        refreshToken: secrets.refreshToken,
        tokenUrl: `${place.receiver.url}/oauth_token.do`,
        authUrl: `${place.receiver.url}/oauth_auth.do`,
        ...value,
      },
    },
  });
const asked = () => place.receiver.received.map(({ method, path }) => `${method} ${path.split("?")[0]}`);
const update = (occasion: "repeat" | "acknowledged" | "severity" | "clear", event = {}) =>
  notificationOf({ occasion, clear: occasion === "clear", event });

describe("a record", () => {
  test("is made once, with what is known", async () => {
    const outcome = await place.send(itsm());
    expect(outcome).toMatchObject({ result: "sent", state: { sysId: "sys1", number: "INC1" }, answer: "created INC1" });
    expect(system.rows).toEqual([
      {
        sys_id: "sys1",
        number: "INC1",
        short_description: "disk-full on web-1",
        impact: "2",
        urgency: "2",
        correlation_id: `${eventId}:2`,
        correlation_display: "Belfry",
        description: expect.stringMatching(
          /^Disk \/var is 97 % full on web-1\n\nEntity: web-1\nEvent: disk-full\nSeverity: ERROR\n/,
        ),
      },
    ]);
  });

  test("is updated and closed as the same one", async () => {
    const { state } = await place.send(itsm());
    await place.send(itsm(), { notification: update("severity", { severity: Severity.CRITICAL }), state });
    expect(system.rows[0]).toMatchObject({
      impact: "1",
      urgency: "1",
      work_notes: "Severity is now CRITICAL: Disk /var is 97 % full on web-1",
    });
    await place.send(itsm(), { notification: update("acknowledged"), state });
    expect(system.rows[0]?.work_notes).toMatch(/^Acknowledged: /);
    await place.send(itsm(), { notification: update("clear"), state });
    expect(system.rows).toHaveLength(1);
    expect(system.rows[0]).toMatchObject({ state: "6", close_notes: "Resolved: Disk /var is 97 % full on web-1" });
    expect(system.rows[0]?.close_code).toBeUndefined();
    expect(asked().filter((request) => request.startsWith("PATCH"))).toHaveLength(3);
  });

  test("is closed with the state, code and notes of the destination", async () => {
    const type = itsm({ closeState: 7, closeCode: "Solved (Permanently)", closeNotes: "by {{rule.name}}" });
    const { state } = await place.send(type);
    await place.send(type, { notification: update("clear"), state });
    expect(system.rows[0]).toMatchObject({
      state: "7",
      close_code: "Solved (Permanently)",
      close_notes: "by page-storage",
    });
  });

  test.each([
    [Severity.CRITICAL, "1"],
    [Severity.ERROR, "2"],
    [Severity.WARNING, "3"],
    [Severity.DEFAULT, "3"],
  ])("of severity %i has impact and urgency %s", async (severity, weight) => {
    await place.send(itsm(), { notification: notificationOf({ event: { severity } }) });
    expect(system.rows[0]).toMatchObject({ impact: weight, urgency: weight });
  });

  test("that a broken try has made is found by its correlation id, and not made again", async () => {
    place.receiver.answer((request, response, socket) => {
      if (request.method !== "POST") return system.answer(request, response, socket);
      system.answer(request, { writeHead: () => ({ end: () => {} }) } as never, socket);
      misbehaving.closesEarly(request, response, socket);
    });
    expect(await place.send(itsm())).toMatchObject({ result: "failed", reason: "network", course: "retry" });
    place.receiver.answer(system.answer);
    expect(await place.send(itsm())).toMatchObject({ result: "sent", state: { sysId: "sys1" } });
    expect(system.rows).toHaveLength(1);
  });

  test("that is found stays known when its update fails", async () => {
    await place.send(itsm());
    place.receiver.answer((request, response, socket) =>
      request.method === "PATCH" ? answering(503)(request, response, socket) : system.answer(request, response, socket),
    );
    const outcome = await place.send(itsm());
    expect(outcome).toMatchObject({ result: "failed", reason: "busy", state: { sysId: "sys1", number: "INC1" } });
  });

  test("that someone deleted is made again", async () => {
    const outcome = await place.send(itsm(), {
      notification: update("repeat"),
      state: { sysId: "gone", number: "INC0" },
    });
    expect(outcome).toMatchObject({ result: "sent", state: { sysId: "sys1" } });
    expect(asked()).toEqual([
      "PATCH /api/now/table/incident/gone",
      "GET /api/now/table/incident",
      "POST /api/now/table/incident",
    ]);
  });

  test("that never was is not made to be closed", async () => {
    const outcome = await place.send(itsm(), { notification: update("clear") });
    expect(outcome).toMatchObject({ result: "sent", answer: "there is no record to close" });
    expect(system.rows).toEqual([]);
  });

  test("of a subject with signs of the query language gets a correlation id without them", async () => {
    const notification = notificationOf({ subjectId: "a^ORcorrelation_id=b" });
    await place.send(itsm(), { notification });
    await place.send(itsm(), { notification });
    expect(system.rows).toHaveLength(1);
    expect(system.rows[0]?.correlation_id).toMatch(/^[\da-f]{64}$/);
  });

  test("has a short description of 160 characters and longer texts of 4,000", async () => {
    const long = { event: { name: "😀".repeat(200), summary: "é".repeat(10_000) } };
    const { state } = await place.send(itsm(), { notification: notificationOf(long) });
    expect([...(system.rows[0]?.short_description ?? "")]).toHaveLength(160);
    expect([...(system.rows[0]?.description ?? "")]).toHaveLength(4000);
    await place.send(itsm(), { notification: notificationOf({ ...long, occasion: "repeat" }), state });
    expect([...(system.rows[0]?.work_notes ?? "")]).toHaveLength(4000);
  });

  test("has the rule's name as its short description where all else renders to nothing", async () => {
    const empty = notificationOf({ event: { body: "" } });
    const notification = { ...empty, rule: { ...empty.rule, message: "{{{event.body}}}" } };
    await place.send(itsm({ shortDescription: " {{{event.body}}}" }), { notification });
    expect(system.rows[0]?.short_description).toBe("page-storage");
  });

  test("without a template has the message as its short description", async () => {
    await place.send(itsm({ shortDescription: "" }));
    expect(system.rows[0]?.short_description).toBe("Disk /var is 97 % full on web-1");
  });
});

describe("a wrong password", () => {
  test("is not tried again, and not shown", async () => {
    const type = itsm({ authorization: { case: "basic", value: { username: "belfry", password: "wr0ng-pass" } } });
    const outcome = await place.send(type);
    expect(outcome).toMatchObject({ result: "failed", reason: "unauthorized", course: "fail" });
    expect(outcome.answer).toContain("User Not Authenticated");
    expect(asked()).toHaveLength(1);
  });
});

describe("OAuth", () => {
  beforeEach(() => {
    system.accessToken = "none yet";
  });

  test("exchanges the refresh token once for many requests", async () => {
    await Promise.all(
      Array.from({ length: 5 }, (_, i) =>
        place.send(withOAuth(), { notification: notificationOf({ subjectId: `subject:${i}` }) }),
      ),
    );
    expect(system.rows).toHaveLength(5);
    expect(asked().filter((request) => request === "POST /oauth_token.do")).toHaveLength(1);
    expect(place.stored).toEqual([secrets.refreshToken]);
  });

  test("keeps a new refresh token before it is used", async () => {
    system.rotates = true;
    await place.send(withOAuth());
    expect(place.stored).toEqual([secrets.refreshToken, "r3fresh-t0ken-2"]);
  });

  test("gets a new access token when the old one is refused, once", async () => {
    await place.send(withOAuth());
    system.accessToken = "another";
    const outcome = await place.send(withOAuth(), { notification: update("repeat") });
    expect(outcome.result).toBe("sent");
    expect(system.accessToken).toBe("access-t0ken-2");

    place.receiver.answer((request, response, socket) =>
      request.path === "/oauth_token.do"
        ? system.answer(request, response, socket)
        : answering(401, '{"error":{"message":"no"}}')(request, response, socket),
    );
    place.receiver.received.length = 0;
    expect(await place.send(withOAuth())).toMatchObject({ reason: "unauthorized", course: "fail" });
    expect(asked().filter((request) => request.startsWith("GET"))).toHaveLength(2);
  });

  test("takes the refresh token that another server has stored meanwhile", async () => {
    system.refreshToken = "r3fresh-t0ken-elsewhere";
    let reads = 0;
    const outcome = await place.send(withOAuth(), {
      refreshToken: {
        read: async () => (reads++ === 0 ? secrets.refreshToken : "r3fresh-t0ken-elsewhere"),
        store: async () => {},
      },
    });
    expect(outcome.result).toBe("sent");
  });

  test("asks by user name and password for a new refresh token, when there are some", async () => {
    system.refreshToken = "unknown to us";
    system.passwordGrant = true;
    const outcome = await place.send(withOAuth({ username: "belfry", password: secrets.password }));
    expect(outcome.result).toBe("sent");
    expect(place.stored.at(-1)).toBe("r3fresh-t0ken-2");
  });

  test("ends with a clear reason when the refresh token is not good", async () => {
    system.refreshToken = "unknown to us";
    const outcome = await place.send(withOAuth());
    expect(outcome).toMatchObject({ result: "failed", reason: "unauthorized", course: "fail" });
    expect(outcome.answer).toBe('no access token: HTTP 400: {"error":"invalid_grant"}');
  });

  test.each([
    ["is busy", answering(503), "busy", "retry"],
    ["answers a page", answering(200, "<html>"), "unreadable", "retry"],
    ["answers no token", answering(200, '{"token":"x"}'), "unreadable", "retry"],
    ["is away", misbehaving.closesEarly, "network", "retry"],
    ["is gone", answering(404), "missing", "fail"],
  ] as const)("when the token endpoint %s: %s", async (_name, answerer, reason, course) => {
    place.receiver.answer(answerer);
    expect(await place.send(withOAuth())).toMatchObject({ result: "failed", reason, course });
  });

  test("shows no token, though the receiver repeats them", async () => {
    system.rotates = true;
    place.receiver.answer((request, response, socket) => {
      if (request.path === "/oauth_token.do") return system.answer(request, response, socket);
      response.writeHead(400).end(JSON.stringify([request.headers, system.refreshToken]));
    });
    const outcome = await place.send(withOAuth());
    expect(outcome.answer).toContain("HTTP 400");
    expect(JSON.stringify(outcome)).not.toMatch(/t0ken/);
  });

  test("never calls authUrl, and goes to no private tokenUrl", async () => {
    await place.send(withOAuth());
    expect(asked().some((request) => request.includes("oauth_auth"))).toBe(false);
    await using guarded = await site({ env: { BELFRY_OUTBOUND_ALLOW: "" } });
    const outcome = await guarded.send(withOAuth({ tokenUrl: `${guarded.receiver.url}/oauth_token.do` }));
    expect(outcome).toMatchObject({ reason: "refused_address", course: "fail" });
    expect(guarded.receiver.received).toEqual([]);
  });
});

test("what it would send is its short description and its description", async () => {
  const type = create(DestinationTypeSchema, { type: itsm() });
  const { subject, body } = await compose(type, notificationOf(), place.world);
  expect(subject).toBe("disk-full on web-1");
  expect(body).toContain("Rule: page-storage");
});
