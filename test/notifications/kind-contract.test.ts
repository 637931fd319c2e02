import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Course, FailureReason, KindName } from "../../src/notifications/kinds/retry.ts";
import { nameServer } from "../support/name-server.ts";
import { type Answerer, answering, misbehaving } from "../support/receivers.ts";
import { destinations, type Site, secrets, site, successes } from "./kinds.ts";

/*
 * What every kind that speaks HTTP holds to: which answers are tried again and how, that no secret leaves, that a time
 * limit holds, that addresses of tenants are guarded. The kinds of e-mail and event have their own forms of it.
 */

type HttpKind = keyof typeof successes;
const httpKinds = Object.keys(successes) as HttpKind[];

let place: Site;
/** The same with a short time limit, for receivers that use all of it. */
let hasty: Site;
beforeAll(async () => {
  place = await site({ env: { BELFRY_OUTBOUND_TIMEOUT: "10000ms" } });
  hasty = await site({ env: { BELFRY_OUTBOUND_TIMEOUT: "300ms" } });
});
afterAll(async () => {
  await place[Symbol.asyncDispose]();
  await hasty[Symbol.asyncDispose]();
});

const slowAnswers: readonly Answerer[] = [misbehaving.hangs, misbehaving.drips];
const tryAt = (kind: KindName, answerer: Answerer) => {
  const at = slowAnswers.includes(answerer) ? hasty : place;
  at.receiver.answer(answerer);
  return at.send(destinations[kind](at.receiver.url));
};

const year = 365 * 24 * 3600;
const inTwoMinutes = () => new Date(Date.now() + 120_000).toUTCString();

/** One row: what is answered, and what follows for the kinds in their order. */
interface Row {
  answer: string;
  answerer: Answerer;
  reason: FailureReason;
  courses: Record<HttpKind, Course>;
  /** The wait that the receiver asks for. */
  waitMs?: number | "two minutes";
}

const all = (course: Course): Record<HttpKind, Course> => ({
  webhook: course,
  officeChat: course,
  incidentPaging: course,
  itsm: course,
  teamChat: course,
});
const limited: Record<HttpKind, Course> = { ...all("retry"), officeChat: "minute", incidentPaging: "minute" };
const failed: Record<HttpKind, Course> = all("fail");
const slow: Record<HttpKind, Course> = { ...failed, webhook: "slowly" };
const gone: Record<HttpKind, Course> = { ...failed, webhook: "disable", officeChat: "disable" };

const status = (
  code: number,
  reason: FailureReason,
  courses: Record<HttpKind, Course>,
  headers: Record<string, string> = {},
  waitMs?: Row["waitMs"],
): Row => ({
  answer: `${code}${Object.entries(headers).map(([name, value]) => `, ${name}: ${value.slice(0, 40)}`)}`,
  answerer: answering(code, "", headers),
  reason,
  courses,
  ...(waitMs !== undefined && { waitMs }),
});

const rows: Row[] = [
  ...[500, 502, 503, 504, 599, 408, 425].map((code) => status(code, "busy", all("retry"))),
  status(503, "busy", all("retry"), { "retry-after": "30" }, 30_000),
  ...[400, 402, 405, 406, 409, 413, 418, 422, 451].map((code) => status(code, "rejected", failed)),
  status(401, "unauthorized", slow),
  status(403, "unauthorized", slow),
  status(404, "missing", slow),
  status(410, "gone", gone),
  ...[300, 301, 302, 303, 304, 307, 308].map((code) => status(code, "redirected", failed, { location: "/elsewhere" })),
  status(429, "rate_limited", limited),
  status(429, "rate_limited", limited, { "retry-after": "7" }, 7000),
  status(429, "rate_limited", limited, { "retry-after": "0" }, 0),
  status(429, "rate_limited", limited, { "retry-after": "-1" }),
  status(429, "rate_limited", limited, { "retry-after": "later, maybe" }),
  status(429, "rate_limited", limited, { "retry-after": String(year) }, year * 1000),
  status(429, "rate_limited", limited, { "retry-after": inTwoMinutes() }, "two minutes"),
  status(429, "rate_limited", limited, { "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" }, 0),
  { answer: "nothing", answerer: misbehaving.hangs, reason: "timeout", courses: all("retry") },
  { answer: "an answer that drips", answerer: misbehaving.drips, reason: "timeout", courses: all("retry") },
  { answer: "a connection that ends", answerer: misbehaving.closesEarly, reason: "network", courses: all("retry") },
  { answer: "half an answer", answerer: misbehaving.breaksOff, reason: "network", courses: all("retry") },
];

describe.each(rows)("$answer", ({ answerer, reason, courses, waitMs }) => {
  test.each(httpKinds)("%s", async (kind) => {
    const outcome = await tryAt(kind, answerer);
    expect(outcome).toMatchObject({ result: "failed", reason, course: courses[kind] });
    if (outcome.result !== "failed") return;
    if (waitMs === "two minutes") expect(outcome.retryAfterMs).toBeGreaterThan(60_000);
    else expect(outcome.retryAfterMs).toBe(waitMs);
  });
});

/** What Slack's API calls errors, under 200. */
const refusals: [FailureReason, Course, string][] = [
  ["rate_limited", "retry", "ratelimited rate_limited"],
  ["busy", "retry", "internal_error fatal_error service_unavailable request_timeout"],
  ["busy", "retry", "org_login_required team_added_to_org accesslimited"],
  ["unauthorized", "fail", "missing_scope no_permission not_authed invalid_auth"],
  ["unauthorized", "fail", "account_inactive token_revoked token_expired ekm_access_denied"],
  ["missing", "fail", "channel_not_found"],
  ["rejected", "fail", "not_in_channel is_archived msg_too_long msg_blocks_too_long no_text restricted_action"],
  ["rejected", "fail", "restricted_action_read_only_channel too_many_attachments invalid_arguments something_new"],
];

/** Answers that say by their body what the status hides. */
const bodies: [HttpKind, string, string, FailureReason, Course][] = [
  ["incidentPaging", "a page", "<!doctype html><title>log in</title>", "unreadable", "retry"],
  ["incidentPaging", "another status", '{"status":"invalid event","errors":["x"]}', "rejected", "fail"],
  ["itsm", "a page of an instance that sleeps", "<html>Hibernating Instance</html>", "unreadable", "retry"],
  ["itsm", "no result", '{"error":{"message":"x"}}', "unreadable", "retry"],
  ["itsm", "nothing", "", "unreadable", "retry"],
  ["teamChat", "a page", "<html>", "unreadable", "retry"],
  ["teamChat", "nothing", "", "unreadable", "retry"],
  ["teamChat", "no word of success", '{"channel":"C1"}', "unreadable", "retry"],
  ...refusals.flatMap(([reason, course, errors]) =>
    errors
      .split(" ")
      .map((error): (typeof bodies)[number] => [
        "teamChat",
        error,
        JSON.stringify({ ok: false, error }),
        reason,
        course,
      ]),
  ),
];

test.each(bodies)("200 that fails: %s, %s", async (kind, _what, body, reason, course) => {
  expect(await tryAt(kind, answering(200, body))).toMatchObject({ result: "failed", reason, course });
});

test.each([
  ["1", undefined],
  ["Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0", "rate_limited"],
  ["Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 503", "busy"],
  ["Microsoft Teams endpoint returned HTTP error 410", "gone"],
  ["Summary or Text is required.", "rejected"],
  ["", "rejected"],
])("a connector of officeChat says in the text of a 200 how it went: %j", async (body, reason) => {
  await using names = await nameServer(() => ["127.0.0.1"]);
  await using own = await site({ resolver: names.resolver });
  own.receiver.answer(answering(200, body));
  const outcome = await own.send(destinations.officeChat(`http://acme.webhook.office.com:${own.receiver.port}`));
  if (reason === undefined) expect(outcome.result).toBe("sent");
  else expect(outcome).toMatchObject({ result: "failed", reason });
});

describe.each(httpKinds)("%s", (kind) => {
  test("takes the product's success", async () => {
    const outcome = await tryAt(kind, successes[kind]);
    expect(outcome.result).toBe("sent");
  });

  test("quotes no secret, though the receiver repeats all that it got", async () => {
    place.receiver.received.length = 0;
    const outcome = await tryAt(kind, (request, response) => {
      const said = JSON.stringify(request);
      response.writeHead(400).end(`${said} ${Buffer.from(said).toString("base64")} ${encodeURIComponent(said)}`);
    });
    expect(outcome).toMatchObject({ result: "failed", reason: "rejected" });
    expect(place.receiver.received.length).toBeGreaterThan(0);
    expect(outcome.answer).toContain("HTTP 400");
    for (const secret of Object.values(secrets)) {
      for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64").slice(0, -2)]) {
        expect(JSON.stringify(outcome)).not.toContain(form);
      }
    }
    expect(JSON.stringify(outcome)).not.toContain(Buffer.from(`belfry:${secrets.password}`).toString("base64"));
  });

  test("keeps what the receiver said short and on one line", async () => {
    const { answer } = await tryAt(kind, answering(400, `a\r\n\u001b[31mb\u0000${"c".repeat(5000)}`));
    expect(answer.length).toBeLessThanOrEqual(500);
    expect(answer).toMatch(/^HTTP 400: a \[31mb c+…$/);
  });

  test("is ended by its caller", async () => {
    const end = new AbortController();
    setTimeout(() => end.abort(), 30);
    place.receiver.answer(misbehaving.hangs);
    const outcome = await place.send(destinations[kind](place.receiver.url), { signal: end.signal });
    expect(outcome).toMatchObject({ result: "failed", reason: "timeout", course: "retry" });
  });

  test("is answered by 2 MiB without harm", async () => {
    const outcome = await tryAt(kind, misbehaving.floods);
    if (kind === "itsm" || kind === "teamChat") expect(outcome).toMatchObject({ reason: "unreadable" });
    else expect(outcome.result).toBe("sent");
  });
});

describe.each(["webhook", "officeChat", "itsm"] as const)("%s goes to public addresses only", (kind) => {
  test.each([
    ["loopback", (port: number) => `http://127.0.0.1:${port}`],
    ["loopback as a number", (port: number) => `http://2130706433:${port}`],
    ["loopback in octal", (port: number) => `http://0177.1:${port}`],
    ["loopback as IPv6", (port: number) => `http://[::ffff:7f00:1]:${port}`],
    ["link-local", () => "http://[fe80::1]"],
    ["metadata", () => "http://169.254.169.254"],
    ["a private network", () => "http://10.0.0.1"],
  ])("not to %s", async (_name, url) => {
    await using guarded = await site({ env: { BELFRY_OUTBOUND_ALLOW: "" } });
    const outcome = await guarded.send(destinations[kind](url(guarded.receiver.port)));
    expect(outcome).toMatchObject({ result: "failed", reason: "refused_address", course: "fail" });
    expect(guarded.receiver.received).toEqual([]);
  });

  test("not to a name whose address has become private", async () => {
    await using names = await nameServer(() => ["127.0.0.1"]);
    await using guarded = await site({ env: { BELFRY_OUTBOUND_ALLOW: "" }, resolver: names.resolver });
    const outcome = await guarded.send(destinations[kind](`http://inner.example.com:${guarded.receiver.port}`));
    expect(outcome).toMatchObject({ result: "failed", reason: "refused_address" });
    expect(guarded.receiver.received).toEqual([]);
  });
});

test.each(["incidentPaging", "teamChat"] as const)("%s goes where the operator says", async (kind) => {
  await using guarded = await site({ env: { BELFRY_OUTBOUND_ALLOW: "" } });
  guarded.receiver.answer(successes[kind]);
  expect((await guarded.send(destinations[kind](guarded.receiver.url))).result).toBe("sent");
});

test.each(["Summer2026!", 'a "quoted"/secret', "100% <safe> & sound", "päss wörd+1"])(
  "a token endpoint that repeats its form tells no secret: %s",
  async (secret) => {
    place.receiver.answer((request, response) => response.writeHead(400).end(`bad request: ${request.body}`));
    const oauth = {
      clientId: "belfry",
      clientSecret: secret,
      refreshToken: "r",
      tokenUrl: `${place.receiver.url}/token`,
      authUrl: place.receiver.url,
    };
    const outcome = await place.send({
      case: "itsm",
      value: { baseUrl: place.receiver.url, shortDescription: "x", authorization: { case: "oauth", value: oauth } },
    });
    expect(outcome.answer).toContain("client_secret=********");
  },
);

test("a record whose number repeats the password is kept without it", async () => {
  const number = `no: ${secrets.password}`;
  place.receiver.answer((request, response) => {
    const body = request.method === "GET" ? { result: [] } : { result: { sys_id: "1", number } };
    response.writeHead(request.method === "GET" ? 200 : 201).end(JSON.stringify(body));
  });
  const outcome = await place.send(destinations.itsm(place.receiver.url));
  expect(outcome).toMatchObject({ result: "sent", state: { sysId: "1", number: "no: ********" } });
});
