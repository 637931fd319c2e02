import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { hasOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { http } from "#gen/google/api/annotations_pb.ts";
import { permissionOf } from "../auth/permission.ts";
import type { Principal } from "../auth/principal.ts";
import { optionOf } from "../proto-option.ts";

/** What an API client did or tried to do. */
export interface AuditEvent {
  readonly principal: Principal;
  /** Full name of the RPC, `<service>/<method>`. */
  readonly rpc: string;
  /** `<type>/<name or id>`; nothing after the slash when that was not known. */
  readonly resource: string;
  /** gRPC code of the answer. */
  readonly code: number;
  readonly requestId: string;
}

/** Keeps a row of a call that did not succeed; never throws. No answer waits for it. */
export type RecordAudit = (event: AuditEvent) => void;

const nameCharsMax = 512;

/** RPCs whose names do not end in what they act on. */
const types: Readonly<Record<string, string>> = {
  SetEventStatus: "event",
  SetMatchingStatus: "event",
  RetryDeliveries: "destination",
};

/** Whether calls of an RPC leave rows in the audit log: all that write, but for the data receiver's. */
export function isAudited(method: DescMethod): boolean {
  return (
    method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS && permissionOf(method) !== Permission.INGEST
  );
}

/** What an RPC acts on, by its name without the verb, singular: `userGroup` for UpdateUserGroup. */
export function resourceType(method: DescMethod): string {
  const noun = types[method.name] ?? method.name.replace(/^[A-Z][a-z]+/, "");
  const singular = noun.replace(/ies$/, "y").replace(/s$/, "");
  return singular.charAt(0).toLowerCase() + singular.slice(1);
}

/** A resource as the audit log shows it. Names may hold anything: NUL, which no text column takes, is replaced. */
export function resourceText(type: string, name: string): string {
  return `${type}/${name.slice(0, nameCharsMax).toWellFormed().replaceAll("\0", "\uFFFD")}`;
}

/**
 * The resource of a call that failed, as far as its request shows it: the name or id in the path, else the name or id of the
 * resource in the body. What a create makes has no id yet.
 */
export function requestedResource(method: DescMethod, request: unknown): string {
  const type = resourceType(method);
  return resourceText(type, request === undefined ? "" : nameIn(method, request as Record<string, unknown>));
}

function nameIn(method: DescMethod, request: Record<string, unknown>): string {
  const creates = method.name.startsWith("Create");
  const paths = creates ? bodyPaths(method.input) : [...routePaths(method), ...bodyPaths(method.input)];
  for (const path of paths) {
    let value: unknown = request;
    for (const name of path) value = (value as Record<string, unknown> | undefined)?.[name];
    if (typeof value === "string" && value !== "") return value;
    if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string"))
      return value.join(",");
  }
  return "";
}

/** Fields that the RPC's path captures, the last one first: it names the thing, those before it name its owners. */
function routePaths(method: DescMethod): string[][] {
  if (!hasOption(method, http)) return [];
  const { value: template } = optionOf(method, http).pattern;
  if (typeof template !== "string") return [];
  const captured = [...template.matchAll(/\{([\w.]+)/g)].map((match) => localPath(method.input, match[1] ?? ""));
  return captured.reverse();
}

function localPath(message: DescMessage, path: string): string[] {
  const names: string[] = [];
  let at: DescMessage | undefined = message;
  for (const part of path.split(".")) {
    const field: DescMessage["fields"][number] | undefined = at?.fields.find(({ name }) => name === part);
    names.push(field?.localName ?? part);
    at = field?.message;
  }
  return names;
}

const nameFields = ["name", "id", "ids", "email", "destination"];

/** Fields that name something, on the request itself and on the messages directly in it. */
function bodyPaths(message: DescMessage): string[][] {
  const own = nameFields.filter((name) => message.field[name] !== undefined).map((name) => [name]);
  const inner = message.fields.flatMap(({ localName, message: below }) =>
    nameFields.filter((name) => below?.field[name] !== undefined).map((name) => [localName, name]),
  );
  return [...own, ...inner];
}
