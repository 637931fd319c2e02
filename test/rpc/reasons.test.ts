import { readFileSync } from "node:fs";
import { type DescFile, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { type FieldRules, field, message } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReasonSchema, FieldRuleSchema } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { routes } from "#gen/routes.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { headers } = await testTenant(server.database.sql);
const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");

describe("the reason of an error", () => {
  const name = "none";
  const calls = {
    http: async (key: Record<string, string>, path: string, body?: unknown) => {
      const answer = await v1(server.url, key)(body === undefined ? "GET" : "POST", path, body);
      const [info] = answer.body.details.filter((each: { "@type": string }) => each["@type"].endsWith(".ErrorInfo"));
      const violations = answer.body.details.flatMap(({ fieldViolations = [] }) => fieldViolations);
      return {
        code: answer.body.code,
        info: [info.reason, info.domain],
        rules: violations.map(({ reason }: { reason: string }) => reason),
      };
    },
    async rpc(
      protocol: "grpc" | "connect" | "grpc-web",
      key: Record<string, string>,
      call: "get" | "create" | "search",
    ) {
      const over = transport(server.target, protocol, key);
      const triggers = createClient(TriggerService, over);
      const failed = await (call === "search"
        ? createClient(EventQueryService, over).searchEvents({})
        : call === "get"
          ? triggers.getTrigger({ name })
          : triggers.createTrigger({
              trigger: { name: "a".repeat(300), type: { source: { case: "event", value: {} } } },
            })
      ).then(
        () => expect.fail("it was done"),
        (error) => ConnectError.from(error),
      );
      const [info] = failed.findDetails(ErrorInfoSchema);
      const rules = failed.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
      return { code: failed.code, info: [info?.reason, info?.domain], rules: rules.map(({ reason }) => reason) };
    },
  };

  test.each([
    [
      "nothing of that name",
      headers,
      "get",
      "/v1/notification/triggers/none",
      undefined,
      Code.NotFound,
      "RESOURCE_NOT_FOUND",
      [],
    ],
    ["no key", {}, "get", "/v1/notification/triggers/none", undefined, Code.Unauthenticated, "KEY_MISSING", []],
    [
      "a key that is cut short",
      { "service-api-key": "bf_x" },
      "search",
      "/v1/events:search",
      {},
      Code.Unauthenticated,
      "KEY_MALFORMED",
      [],
    ],
    [
      "a field that is missing",
      headers,
      "search",
      "/v1/events:search",
      {},
      Code.InvalidArgument,
      "INVALID_FIELD",
      ["REQUIRED"],
    ],
    [
      "a name that is too long",
      headers,
      "create",
      "/v1/notification/triggers",
      { name: "a".repeat(300), type: { event: {} } },
      Code.InvalidArgument,
      "INVALID_FIELD",
      ["STRING_MAX_LEN"],
    ],
  ] as const)("is the same over every protocol: %s", async (_, key, call, path, body, code, reason, rules) => {
    const wanted = {
      code,
      info: [`ERROR_REASON_${reason}`, "belfry"],
      rules: expect.arrayContaining(rules.map((rule) => `FIELD_RULE_${rule}`)),
    };
    expect(await calls.http(key, path, body)).toEqual(wanted);
    for (const protocol of ["grpc", "connect", "grpc-web"] as const)
      expect(await calls.rpc(protocol, key, call), protocol).toEqual(wanted);
  });

  test.each([
    ["an unknown path", "GET", "/v1/nothing", undefined, "PATH_NOT_FOUND", undefined],
    ["another method", "PATCH", "/v1/events:search", {}, "METHOD_NOT_ALLOWED", undefined],
    ["JSON that cannot be read", "POST", "/v1/events:search", "{", "INVALID_FIELD", "MALFORMED"],
    [
      "a reference to nothing",
      "POST",
      "/v1/notification/rules",
      { name: "r", triggerNames: ["none"] },
      "INVALID_FIELD",
      "UNKNOWN_NAME",
    ],
    [
      "a cursor of nothing",
      "GET",
      "/v1/notification/rules?pageSize=1&pageToken=x",
      undefined,
      "INVALID_FIELD",
      "CURSOR",
    ],
  ] as const)("says %s", async (_, method, path, body, reason, rule) => {
    const answer = await v1(server.url, headers)(method, path, body);
    expect(answer.body.details.at(-1)).toMatchObject({ reason: `ERROR_REASON_${reason}`, domain: "belfry" });
    if (rule !== undefined) expect(answer.body.details[0].fieldViolations[0].reason).toBe(`FIELD_RULE_${rule}`);
  });

  test("is listed in docs/errors.md, each one", () => {
    const names = [...ErrorReasonSchema.values, ...FieldRuleSchema.values].filter(({ number }) => number > 0);
    expect(names.filter(({ name }) => !page.includes(`\`${name}\``)).map(({ name }) => name)).toEqual([]);
  });
});

describe("every rule of buf.validate in the proto files has its reason", () => {
  createValidator();
  const known = new Set(FieldRuleSchema.values.map((value) => value.name));
  const ids = new Set(["required"]);
  const bounds = ["gt", "gte", "lt", "lte"];

  function takeRules({ cel, type }: FieldRules) {
    for (const { id } of cel) ids.add(id);
    if (type.case === undefined) return;
    const between: string[] = [];
    for (const [member, value] of Object.entries(type.value as Record<string, unknown>)) {
      if (["items", "keys", "values"].includes(member)) takeRules(value as FieldRules);
      else if (value !== null && typeof value === "object" && "case" in value) {
        if (bounds.includes(String(value.case))) between.push(String(value.case));
        else if (value.case !== undefined) ids.add(`${type.case}.${value.case}`);
      } else if (!member.startsWith("$") && !(Array.isArray(value) && value.length === 0))
        ids.add(`${type.case}.${member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`);
    }
    if (between.length > 0)
      ids.add(
        `${type.case}.${between
          .sort()
          .reverse()
          .sort((a) => (a.startsWith("g") ? -1 : 1))
          .join("_")}`,
      );
  }

  function takeMessage(desc: DescMessage) {
    if (!desc.typeName.startsWith("belfry.")) return;
    const own = getOption(desc, message);
    for (const { id } of own.cel) ids.add(id);
    if (own.oneof.length > 0) ids.add("message.oneof");
    for (const each of desc.fields) if (hasOption(each, field)) takeRules(getOption(each, field));
    desc.nestedMessages.forEach(takeMessage);
  }

  const files = new Set<DescFile>();
  function takeFile(file: DescFile) {
    if (files.has(file)) return;
    files.add(file);
    file.messages.forEach(takeMessage);
    file.dependencies.forEach(takeFile);
  }
  for (const { method } of routes) takeFile(method.parent.file);

  test.each([...ids])("%s", (id) => {
    expect(known).toContain(`FIELD_RULE_${id.replaceAll(".", "_").toUpperCase()}`);
  });
});
