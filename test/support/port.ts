import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { routes } from "#gen/routes.ts";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { keyVerifier } from "../../src/auth/key-verifier.ts";
import type { ClientType, Role } from "../../src/auth/principal.ts";
import { type Config, readConfig } from "../../src/config/settings.ts";
import { certificate } from "../../src/http/certificate.ts";
import { openPort, type PortOptions } from "../../src/http/port.ts";
import { unreadResponses } from "../../src/http/unread-responses.ts";
import { openLog } from "../../src/rpc/log.ts";
import { pipeline } from "../../src/rpc/pipeline.ts";
import { requestMemory } from "../../src/rpc/request-memory.ts";
import { atEnd } from "./at-end.ts";
import { type TestDatabase, temporaryDir, testDatabase } from "./database.ts";

/** RPCs of one service for a test. */
export interface TestService<S extends DescService = DescService> {
  service: S;
  implementation: Partial<ServiceImpl<S>>;
}

/** Pairs a service with some of its RPCs. */
export function served<S extends DescService>(service: S, implementation: Partial<ServiceImpl<S>>): TestService {
  return { service, implementation: implementation as Partial<ServiceImpl<DescService>> };
}

interface Options extends Partial<Pick<PortOptions, "notReady">> {
  secure?: boolean;
  settings?: Partial<Config>;
  database?: TestDatabase;
}

/** One line of the log. */
export type LogLine = Record<string, unknown> & { requestId?: string; rpc?: string; code?: string; msg?: string };

/** A port on a free number of this machine, with a real key store, and its log as lines. Closed as `atEnd` says. */
export async function testPort(services: TestService[], options: Options = {}) {
  const database = options.database ?? (await testDatabase());
  const config: Config = {
    ...readConfig({ BELFRY_DATA_DIR: temporaryDir(), BELFRY_PORT: "0", BELFRY_HOST: "127.0.0.1" }),
    ...options.settings,
  };
  const tls = options.secure ? await certificate(config) : undefined;
  const lines: LogLine[] = [];
  const log = openLog("info", { write: (text) => lines.push(JSON.parse(text)) });
  const { gate, sql } = database.pool;
  const { verify } = keyVerifier(database.pool);
  const untaken = unreadResponses({ bytesMax: config.answerBytesMax, stallMs: config.streamIdleMs });
  atEnd(() => untaken.stop());
  const { admit, implement } = pipeline({
    verify,
    gate,
    log,
    room: (_method, _header, _principal, record) => untaken.check(record),
  });
  const wrapped = services.map(({ service, implementation }) => ({
    service,
    implementation: implement(service, implementation),
  }));
  const notReady = options.notReady ?? (() => (gate.open ? undefined : "the database is away"));
  const own = routes.filter(({ method }) => services.some(({ service }) => service === method.parent));
  const port = await openPort({
    config,
    tls,
    log,
    admit,
    services: wrapped,
    routes: own,
    notReady,
    untaken,
    bodies: requestMemory(config.bodyBytesMax),
    readers: new Map(),
    foreign: new Map(),
    aliases: { services: new Map(), keyHeaders: [] },
    stopping: new AbortController(),
    ended() {},
    morePages() {},
  });
  atEnd(() => port.close({ drainMs: 0 }));
  const { id: tenantId } = await createTenant(sql, `tenant of ${port.address.port}`);

  /** A new key of a new client. */
  async function key(type: ClientType = "USER", role: Role | null = type === "USER" ? "manager" : null) {
    const client = await createClient(sql, tenantId, { name: "test", type, role });
    const { text } = await createKey(sql, tenantId, client.id, { description: "", expiresMs: null });
    return { text, clientId: client.id };
  }

  /** The log's line of a request, once it has ended. */
  async function lineOf(requestId: string | null | undefined) {
    for (let i = 0; i < 300; i += 1) {
      const found = lines.find((line) => line.requestId === requestId && "ms" in line);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`no line of request ${requestId}`);
  }

  return { ...port, url: port.address.url, ca: tls?.caFile, database, key, lines, lineOf, tenantId };
}
