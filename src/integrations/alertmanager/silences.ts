import { Code, ConnectError } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { matcherText } from "../../clause/label-matcher.ts";
import type { SilenceDoor } from "../../notifications/api/silences/door.ts";
import { isSilenceId, type SilenceState, type StoredSilence, stateOf } from "../../notifications/silences/silences.ts";
import { messageTooLarge } from "../../wire/status.ts";
import { type Answer, json, type Operation, type OperationCall } from "../integration.ts";
import { filtersOf, flagsOf } from "./listing.ts";
import { readSentSilence } from "./silence-body.ts";
import { checkJsonType } from "./store-alerts.ts";
import { timeText } from "./times.ts";

const bodyBytesMax = 1024 * 1024;
/** What a silence without an end shows, as long as it has none. */
const stillMs = 86_400_000;

const asText = (status: number, text: string): Answer => json(status, text);
const notFound = asText(404, "silence not found");

/** A silence as Alertmanager shows it. Its scope, which Alertmanager has none of, is shown as annotations. */
export function shownSilence(row: StoredSilence, nowMs: number) {
  const { id, comment, createdBy, parts, ruleNames, destinationNames } = row;
  const scope = {
    ...(ruleNames.length > 0 && { "belfry.ruleNames": JSON.stringify(ruleNames) }),
    ...(destinationNames.length > 0 && { "belfry.destinationNames": JSON.stringify(destinationNames) }),
  };
  return {
    id,
    status: { state: stateOf(row, nowMs).toLowerCase() },
    updatedAt: timeText(Number(row.updatedMs)),
    comment,
    createdBy,
    endsAt: timeText(row.endsMs === null ? nowMs + stillMs : Number(row.endsMs)),
    matchers: parts.map(({ name, operator, value }) => ({
      isEqual: operator.startsWith("="),
      isRegex: operator.endsWith("~"),
      name,
      value,
    })),
    startsAt: timeText(Number(row.startsMs)),
    ...(Object.keys(scope).length > 0 && { annotations: scope }),
  };
}

/** The operations over silences, which are those of the native API. */
export function silenceOperations(door: SilenceDoor): readonly Operation[] {
  return [
    {
      name: "postSilences",
      routes: [{ method: "POST", path: "/api/v2/silences" }],
      permission: Permission.OPERATE,
      body: "unpacked",
      serve: (call, body) => post(door, call, body),
    },
    {
      name: "getSilences",
      routes: [{ method: "GET", path: "/api/v2/silences" }],
      permission: Permission.READ,
      languages: { filter: "MATCHER" },
      serve: (call) => list(door, call),
    },
    {
      name: "getSilence",
      routes: [{ method: "GET", path: "/api/v2/silence/*" }],
      permission: Permission.READ,
      serve: (call) =>
        byId(call, async (id) => json(200, shownSilence(await door.read(call.tenantId, id), call.nowMs()))),
    },
    {
      name: "deleteSilence",
      routes: [{ method: "DELETE", path: "/api/v2/silence/*" }],
      permission: Permission.OPERATE,
      serve: (call) =>
        byId(call, async (id) => {
          await door.expire(call.tenantId, id, call.caller);
          return { status: 200 };
        }),
    },
  ];
}

async function byId({ path }: OperationCall, work: (id: string) => Promise<Answer>): Promise<Answer> {
  const id = path.slice(path.lastIndexOf("/") + 1);
  if (!isSilenceId(id))
    return json(422, {
      code: 601,
      message: `silenceID in path must be of type uuid: ${JSON.stringify(id.slice(0, 100))}`,
    });
  return await asAnswer(() => work(id));
}

/** Alertmanager answers what its handlers refuse with a text. */
async function asAnswer(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    if (error.code === Code.NotFound) return notFound;
    if (error.code === Code.InvalidArgument || error.code === Code.FailedPrecondition)
      return asText(400, error.rawMessage);
    throw error;
  }
}

async function post(door: SilenceDoor, call: OperationCall, body: Buffer): Promise<Answer> {
  checkJsonType(call.headers["content-type"]);
  if (body.length > bodyBytesMax) throw messageTooLarge(bodyBytesMax);
  if (body.length === 0) return json(422, { code: 602, message: "silence in body is required" });
  const sent = readSentSilence(body.toString());
  if (typeof sent === "string") return asText(400, sent);
  if ("code" in sent) return json(sent.code === 400 ? 400 : 422, sent);
  if (sent.startsMs >= sent.endsMs) return asText(400, "start time must be before end time");
  if (sent.endsMs < call.nowMs()) return asText(400, "end time can't be in the past");
  const { id, ...wanted } = sent;
  return await asAnswer(async () => {
    const made =
      id === ""
        ? await door.create(call.tenantId, wanted, call.caller)
        : await door.replace(call.tenantId, id, wanted, call.caller);
    return json(200, { silenceID: made.id });
  });
}

const order: readonly SilenceState[] = ["ACTIVE", "PENDING", "EXPIRED"];

async function list(door: SilenceDoor, call: OperationCall): Promise<Answer> {
  return await asAnswer(async () => {
    const flags = flagsOf(call.query, ["active", "pending", "expired"]);
    const canonical = filtersOf(call.query).map(matcherText);
    const states = order.filter((state) => flags[state.toLowerCase() as keyof typeof flags]);
    const nowMs = Math.floor(call.nowMs());
    const pages = door.list(call.tenantId, { states, canonical }, nowMs);
    const body = texts(pages, nowMs, call);
    return { status: 200, headers: { "content-type": "application/json" }, body };
  });
}

async function* texts(
  pages: AsyncIterable<readonly StoredSilence[]>,
  nowMs: number,
  { pace }: Pick<OperationCall, "pace">,
): AsyncGenerator<string> {
  let before = "[";
  for await (const page of pages) {
    const some: string[] = [];
    for (const row of page) {
      const wait = pace();
      if (wait !== undefined) await wait;
      some.push(JSON.stringify(shownSilence(row, nowMs)));
    }
    if (some.length === 0) continue;
    yield `${before}${some.join(",")}`;
    before = ",";
  }
  yield before === "[" ? "[]\n" : "]\n";
}
