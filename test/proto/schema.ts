import { globSync } from "node:fs";
import type { DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { getOption } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { HttpRule } from "#gen/google/api/http_pb.ts";

const gen = new URL("../../gen/", import.meta.url).pathname;

/** The files of proto/belfry, as gen/ describes them. */
async function readFiles(): Promise<DescFile[]> {
  const files: DescFile[] = [];
  for (const path of globSync("belfry/**/*_pb.ts", { cwd: gen }).sort()) {
    const exported: Record<string, unknown> = await import(gen + path);
    const file = Object.entries(exported).find(([name]) => name.startsWith("file_"))?.[1];
    files.push(file as DescFile);
  }
  return files;
}

const files = await readFiles();
const services: DescService[] = files.flatMap((file) => file.services);
export const methods: DescMethod[] = services.flatMap((service) => service.methods);
export const messages: DescMessage[] = files.flatMap((file) => file.messages);

/** `ListRules` of belfry.notifications.v1.RuleService as `RuleService.ListRules`. */
export function nameOf(method: DescMethod): string {
  return `${method.parent.name}.${method.name}`;
}

/** Every route of an RPC, without the names of its variables: `GET /v1/events/{}`. */
export function routesOf(method: DescMethod): string[] {
  const rule = getOption(method, http);
  return [rule, ...rule.additionalBindings].flatMap(routeOf);
}

function routeOf({ pattern }: HttpRule): string[] {
  if (pattern.case === undefined) return [];
  if (pattern.case === "custom") throw new Error("custom verbs are not used");
  return [`${pattern.case.toUpperCase()} ${pattern.value.replaceAll(/\{[^}]*\}/g, "{}")}`];
}

/** A message and every message that its fields lead to, through those that `follow` accepts; google's are left out. */
export function messagesBelow(
  message: DescMessage,
  follow: (field: DescField) => boolean = () => true,
  seen = new Set<DescMessage>(),
): Set<DescMessage> {
  if (seen.has(message) || message.typeName.startsWith("google.")) return seen;
  seen.add(message);
  for (const field of message.fields)
    if (field.message !== undefined && follow(field)) messagesBelow(field.message, follow, seen);
  return seen;
}
