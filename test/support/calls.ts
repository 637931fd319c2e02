import { globSync } from "node:fs";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { routes } from "#gen/routes.ts";
import type { Db } from "../../src/db/connect.ts";
import { type Target, transport } from "./clients.ts";
import type { TestServer } from "./server.ts";
import { type TestTenant, testTenant } from "./tenant.ts";

/** A tenant of its own for one call, with what a row of calls needs to make what the call is about. */
export interface World {
  readonly db: Db;
  readonly tenant: TestTenant;
  /** Stands in every name and text that a row makes, so that what leaks is found. */
  readonly mark: string;
  /** Calls by the tenant's manager. */
  client<S extends DescService>(service: S): Client<S>;
}

/**
 * One RPC, as the tests that walk over all of them call it. Every folder keeps its rows in `calls.ts` under
 * `<service>/<method>`.
 */
export interface Call {
  /** A request that succeeds for the tenant's manager, after what it needs has been made; a list for a client stream. */
  request(world: World): object | Promise<object>;
  /**
   * What the manager of another tenant is answered to the same request: `not found` (code 5), `nothing` (success, and
   * nothing of the first tenant in it), `his own` (done within his own tenant), `refused` (code 7: it takes no key).
   */
  elsewhere: "not found" | "nothing" | "his own" | "refused";
  /** What is sent in the place of the tenant's key. */
  headers?(world: World): Record<string, string> | Promise<Record<string, string>>;
  /** Its answer repeats no text of the tenant's, only ids or figures: then it is enough that the others' differs. */
  unmarked?: true;
}

export type Calls = Readonly<Record<string, Call>>;

type Request = Call["request"];
/** Rows by what the manager of another tenant is answered. */
export const notFound = (request: Request): Call => ({ request, elsewhere: "not found" });
export const nothing = (request: Request): Call => ({ request, elsewhere: "nothing" });
export const hisOwn = (request: Request): Call => ({ request, elsewhere: "his own" });

/** Makes what a request is about, then the request, which is empty unless given. */
export const after =
  <T>(make: (world: World) => Promise<T>, request: (made: T, world: World) => object = () => ({})): Request =>
  async (world) =>
    request(await make(world), world);

/** Every RPC of every service, those without a route of /v1 (client streams) included. */
export const allMethods: readonly DescMethod[] = [
  ...new Set(routes.map(({ method }): DescService => method.parent)),
].flatMap((service) => service.methods);

/** `<service>/<method>`, without the package. */
export const callName = (method: DescMethod) => `${method.parent.name}/${method.name}`;

/** The rows of all folders. */
export async function readCalls(): Promise<Calls> {
  const root = new URL("../", import.meta.url).pathname;
  const modules = await Promise.all(globSync("*/calls.ts", { cwd: root }).map((path) => import(`${root}${path}`)));
  return Object.assign({}, ...modules.map(({ calls }) => calls));
}

let made = 0;

export async function newWorld(server: TestServer): Promise<World> {
  const tenant = await testTenant(server.database.sql);
  made += 1;
  return {
    db: server.database.sql,
    tenant,
    mark: `mark${made}x${Math.random().toString(36).slice(2)}`,
    client: (service) => createClient(service, grpc(server.target, tenant.headers)),
  };
}

const transports = new Map<string, Transport>();

/** One connection for all calls of one caller to one server. */
function grpc(target: Target, headers: Record<string, string>): Transport {
  const key = JSON.stringify([target.url, headers]);
  // What pages alone may send does not come over gRPC.
  const way = transports.get(key) ?? transport(target, "sec-fetch-site" in headers ? "connect-json" : "grpc", headers);
  transports.set(key, way);
  return way;
}

/** Calls an RPC over gRPC; of a server stream the first message is the answer. */
export async function callRpc(
  target: Target,
  headers: Record<string, string>,
  method: DescMethod,
  request: object,
  signal?: AbortSignal,
): Promise<unknown> {
  const client = createClient(method.parent, grpc(target, headers)) as unknown as Record<
    string,
    (request: unknown, options: object) => unknown
  >;
  const run = client[method.localName] as (request: unknown, options: object) => unknown;
  if (method.methodKind === "client_streaming") return await run(streamed(request as object[]), { signal });
  if (method.methodKind !== "server_streaming") return await run(request, { signal });
  for await (const answer of run(request, { signal }) as AsyncIterable<unknown>) return answer;
  return undefined;
}

async function* streamed(messages: object[]) {
  yield* messages;
}

/** Whether a server has an RPC; those that are declared and not built yet answer code 12 whatever they are asked. */
export async function isBuilt(server: TestServer, headers: Record<string, string>, method: DescMethod) {
  const request = method.methodKind === "client_streaming" ? [] : {};
  const signal = AbortSignal.timeout(method.methodKind === "server_streaming" ? 3000 : 10_000);
  try {
    await callRpc(server.target, headers, method, request, signal);
    return true;
  } catch (error) {
    const { code, rawMessage } = error as { code?: number; rawMessage?: string };
    return !(code === 12 && rawMessage?.endsWith("is not implemented yet"));
  }
}
