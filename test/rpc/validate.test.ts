import { create, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { validateItem, validateRequest } from "../../src/rpc/validate.ts";

/** The paths of what is wrong with a request, as the error tells them; empty when it is good. */
function wrong<M extends DescMethod>(method: M, init: MessageInitShape<M["input"]>): string[] {
  try {
    validateRequest(method)(create(method.input, init as never));
    return [];
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    expect(error.code).toBe(Code.InvalidArgument);
    const violations = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
    for (const { field, description } of violations) expect(error.rawMessage).toContain(`${field}: ${description}`);
    return violations.map(({ field }) => field);
  }
}

const { createTrigger, updateTrigger, listTriggers } = TriggerService.method;

describe("values that are present", () => {
  test("are checked, and the error names their paths as JSON spells them", () => {
    expect(wrong(listTriggers, { name: "x".repeat(256), description: "a\0b" })).toEqual(["name", "description"]);
  });

  test("deep ones too, with places of lists", () => {
    const filter = (operation: number) => ({ field: "name", operation, values: [{ kind: { case: undefined } }] });
    const found = wrong(EntityService.method.searchEntities, {
      searchInput: { filters: [filter(1), filter(99)] },
    } as never);
    expect(found.length).toBeGreaterThan(0);
  });
});

describe("required fields", () => {
  test("must be there on creation", () => {
    expect(wrong(createTrigger, {})).toEqual(["trigger"]);
    expect(wrong(createTrigger, { trigger: { description: "x" } })).toContain("trigger.name");
  });

  test("may be missing in an update that does not mask them", () => {
    const trigger = { name: "a", description: "new" };
    expect(wrong(updateTrigger, { trigger, updateMask: { paths: ["description"] } })).toEqual([]);
    expect(wrong(updateTrigger, { trigger })).toEqual([]);
  });

  test("must be there in an update that masks them", () => {
    const trigger = { description: "new" };
    expect(wrong(updateTrigger, { trigger, updateMask: { paths: ["name"] } })).toEqual(["trigger.name"]);
  });

  test("that the path names must be there in every update", () => {
    expect(wrong(updateTrigger, { trigger: { description: "new" } })).toEqual(["trigger.name"]);
  });

  test("are the same where a resource is in its request and where a member holds it", () => {
    const { updateUserAccount } = UserAccountService.method;
    const masked = (...paths: string[]) => ({ id: "a", user: { lastName: "L" }, updateMask: { paths } });
    expect(wrong(updateUserAccount, { id: "a", user: { lastName: "L" } })).toEqual([]);
    expect(wrong(updateUserAccount, masked("last_name"))).toEqual([]);
    expect(wrong(updateUserAccount, masked("email"))).toEqual(["user.email"]);
    expect(wrong(updateUserAccount, masked("user.password"))).toEqual(["user.password"]);
    expect(wrong(updateUserAccount, { user: {} })).toEqual(["id"]);
  });

  test("within a populated field of an update must be there", () => {
    const type = { source: { case: "event" as const, value: {} } };
    for (const updateMask of [undefined, { paths: ["type"] }]) {
      expect(wrong(updateTrigger, { trigger: { name: "a", type }, updateMask })).toEqual(["trigger.type.event.query"]);
    }
  });
});

describe("items of a batch", () => {
  const bad = create(EventSchema, { name: "", severity: 77 as never });

  test("do not fail the request", () => {
    expect(wrong(DataReceiverService.method.putEvents, { events: [bad] })).toEqual([]);
  });

  test("are checked one by one, with paths that begin with their own", () => {
    const found = validateItem(EventSchema, bad, "events[3]").map(({ path }) => path);
    expect(found).toContain("events[3].severity");
    expect(found.every((path) => path.startsWith("events[3]"))).toBe(true);
  });
});

test("every RPC's rules compile, and an empty request never breaks the check itself", async () => {
  const { routes } = await import("#gen/routes.ts");
  for (const method of new Set<DescMethod>(routes.map((route) => route.method))) wrong(method, {});
});
