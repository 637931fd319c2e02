import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeEach } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import type { AttemptOutcome } from "../../src/notifications/kinds/attempt-outcome.ts";
import { send, type Try } from "../../src/notifications/kinds/kinds.ts";
import type { KindName } from "../../src/notifications/kinds/retry.ts";
import {
  openSendEnvironment,
  type SendEnvironment,
  type SendOptions,
} from "../../src/notifications/kinds/send-environment.ts";
import { type Answerer, answering, type HttpReceiver, httpReceiver } from "../support/receivers.ts";
import { notificationOf } from "./notifications.ts";

export type TypeInit = NonNullable<MessageInitShape<typeof DestinationTypeSchema>["type"]>;

/** Texts that stand for secrets; none is part of another. */
export const secrets = {
  webhookPath: "Zk3secretpath8",
  integrationKey: "R0utingKeyOf32Characters00000000",
  password: "pa55/word+with=signs é",
  clientSecret: "cl1ent-s3cret",
  refreshToken: "r3fresh-t0ken-1",
  token: "xoxb-1234-s3cret",
  signingSecret: `whsec_${Buffer.from("a signing secret of some bytes").toString("base64")}`,
  header: "Bearer h3ader-s3cret",
} as const;

/** A destination of each kind at this receiver. */
export const destinations: Readonly<Record<KindName, (url: string) => TypeInit>> = {
  email: () => ({ case: "email", value: { to: "ops@example.com" } }),
  event: () => ({
    case: "event",
    value: {
      nameTemplate: "from {{{event.name}}}",
      typeTemplate: "derived",
      summaryTemplate: "{{{event.summary}}}",
      bodyTemplate: "by {{rule.name}}",
      severity: Severity.CRITICAL,
    },
  }),
  officeChat: (url) => ({
    case: "officeChat",
    value: { webhookUrl: `${url}/webhookb2/${secrets.webhookPath}`, text: "**{{{event.name}}}**" },
  }),
  incidentPaging: () => ({ case: "incidentPaging", value: { integrationKey: secrets.integrationKey } }),
  itsm: (url) => ({
    case: "itsm",
    value: {
      baseUrl: url,
      shortDescription: "{{{event.name}}} on {{{entity.name}}}",
      authorization: { case: "basic", value: { username: "belfry", password: secrets.password } },
    },
  }),
  teamChat: () => ({ case: "teamChat", value: { channel: "ops", token: secrets.token } }),
  webhook: (url) => ({
    case: "webhook",
    value: {
      url: `${url}/hook`,
      signingSecret: secrets.signingSecret,
      headers: { authorization: secrets.header, "x-team": "storage" },
    },
  }),
};

/** What a good receiver of the kind answers, request by request. */
export const successes: Readonly<Record<Exclude<KindName, "email" | "event">, Answerer>> = {
  officeChat: answering(202),
  incidentPaging: (request, response) => {
    const { dedup_key } = JSON.parse(request.body);
    response.writeHead(202).end(JSON.stringify({ status: "success", message: "Event processed", dedup_key }));
  },
  itsm: (request, response) => {
    if (request.method === "GET") return void response.writeHead(200).end('{"result":[]}');
    const result = { sys_id: "a1b2c3", number: "INC0010001" };
    response.writeHead(request.method === "POST" ? 201 : 200).end(JSON.stringify({ result }));
  },
  teamChat: answering(200, JSON.stringify({ ok: true, channel: "C024BE91L", ts: "1503435956.000247" })),
  webhook: answering(200, "thanks"),
};

/** Senders with a receiver on loopback; the products of the operator's addresses are there too. */
export interface Site extends AsyncDisposable {
  world: SendEnvironment;
  receiver: HttpReceiver;
  /** The events that the `event` kind has made. */
  events: { tenantId: string; item: EventItem; chain: readonly string[] }[];
  /** What was stored as the refresh token, in order. */
  stored: string[];
  /** One try at a destination; absent parts are those of a first try. */
  send(type: TypeInit, changes?: Partial<Omit<Try, "type">>): Promise<AttemptOutcome>;
}

export async function site(
  options: { env?: Record<string, string> } & Pick<SendOptions, "resolver"> = {},
): Promise<Site> {
  const receiver = await httpReceiver();
  const { resolver, env = {} } = options;
  const events: Site["events"] = [];
  const stored: string[] = [secrets.refreshToken];
  const settings = readConfig({
    BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
    BELFRY_OUTBOUND_TIMEOUT: "10000ms",
    BELFRY_PUBLIC_URL: "https://belfry.example.com/",
    BELFRY_INCIDENT_PAGING_URL: receiver.url,
    BELFRY_TEAM_CHAT_URL: `${receiver.url}/api`,
    ...env,
  });
  const world = openSendEnvironment(settings, {
    ownUrl: "https://localhost:8443",
    ...(resolver && { resolver }),
    async createEvent(tenantId, item, chain) {
      events.push({ tenantId, item, chain });
      return undefined;
    },
    nowMs: Date.now,
  });
  return {
    world,
    receiver,
    events,
    stored,
    send: (type, changes = {}) =>
      send(
        {
          type: create(DestinationTypeSchema, { type }),
          destinationKey: "tenant/ops",
          notification: notificationOf(),
          state: {},
          refreshToken: {
            read: async () => stored.at(-1) as string,
            store: async (secret) => void stored.push(secret),
          },
          signal: new AbortController().signal,
          ...changes,
        },
        world,
      ),
    async [Symbol.asyncDispose]() {
      await world.outbound.close();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

/** Opens a site for a test file; before each test its receiver has got nothing, and answers so where that is given. */
export async function fileSite(answerer?: Answerer): Promise<Site> {
  const place = await site();
  afterAll(() => place[Symbol.asyncDispose]());
  beforeEach(() => {
    place.receiver.received.length = 0;
    place.events.length = 0;
    if (answerer !== undefined) place.receiver.answer(answerer);
  });
  return place;
}
