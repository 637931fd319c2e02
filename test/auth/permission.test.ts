import { describe, expect, test } from "vitest";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { checkPermissions, permissionOf, permits } from "../../src/auth/permission.ts";
import type { ClientType, Principal, Role } from "../../src/auth/principal.ts";

const callers: [ClientType, Role | null][] = [
  ["DATA_INGEST", null],
  ["USER_MANAGEMENT", null],
  ["USER", "read_only_user"],
  ["USER", "user"],
  ["USER", "manager"],
];

const table: [keyof typeof Permission, string][] = [
  ["UNSPECIFIED", "-----"],
  ["INGEST", "y--yy"],
  ["ACCOUNTS", "-y--y"],
  ["READ", "--yyy"],
  ["OPERATE", "---yy"],
  ["CONFIGURE", "----y"],
  ["ADMINISTER", "----y"],
  ["SIGN_IN", "-----"],
  ["SELF", "yyyyy"],
];

const principal = (clientType: ClientType, role: Role | null): Principal => ({
  tenantId: "",
  tenantName: "",
  clientId: "",
  clientName: "",
  keyId: "",
  keyPrefix: "",
  clientType,
  role,
});

describe("who holds a permission", () => {
  test.each(table)("%s", (name, expected) => {
    const held = callers.map(([type, role]) =>
      permits(Permission[name] as Permission, principal(type, role)) ? "y" : "-",
    );
    expect(held.join("")).toBe(expected);
  });

  test("a USER client without a role holds none", () => {
    for (const [name] of table) expect(permits(Permission[name] as Permission, principal("USER", null))).toBe(false);
  });
});

describe("what an RPC needs", () => {
  test("is in its proto file", () => {
    expect(permissionOf(DataReceiverService.method.putEvents)).toBe(Permission.INGEST);
    expect(permissionOf(EntityService.method.searchEntities)).toBe(Permission.READ);
  });

  test("is declared for every RPC", () => {
    checkPermissions([DataReceiverService, EntityService, EventQueryService, EventManagementService]);
  });
});
