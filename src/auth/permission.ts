import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Permission, permission as permissionOption } from "#gen/belfry/auth/v1/permission_pb.ts";
import { optionOf } from "../proto-option.ts";
import type { Principal } from "./principal.ts";

/** The holders of each permission: client types, and roles of USER clients. One row for each row of the table in the manual. */
const holders: Record<Permission, readonly string[]> = {
  [Permission.UNSPECIFIED]: [],
  [Permission.INGEST]: ["DATA_INGEST", "user", "manager"],
  [Permission.ACCOUNTS]: ["USER_MANAGEMENT", "manager"],
  [Permission.READ]: ["read_only_user", "user", "manager"],
  [Permission.OPERATE]: ["user", "manager"],
  [Permission.CONFIGURE]: ["manager"],
  [Permission.ADMINISTER]: ["manager"],
  // Whoever may is decided without a principal (src/rpc/admission.ts).
  [Permission.SIGN_IN]: [],
  [Permission.SELF]: ["DATA_INGEST", "USER_MANAGEMENT", "read_only_user", "user", "manager"],
};

/** The permission that the proto file declares for an RPC; UNSPECIFIED, which no client holds, when it declares none. */
export function permissionOf(method: DescMethod): Permission {
  return optionOf(method, permissionOption);
}

/** The client types and roles that hold a permission, to be read. */
export const holdersOf = (permission: Permission): string => (holders[permission] ?? []).join(", ");

/** Whether this principal may call RPCs that need this permission. */
export function permits(permission: Permission, principal: Principal): boolean {
  const holder = principal.clientType === "USER" ? (principal.role ?? "") : principal.clientType;
  return holders[permission]?.includes(holder) ?? false;
}

/** Checks that every RPC declares a permission. @throws an error that names those without one */
export function checkPermissions(services: readonly DescService[]): void {
  const without = services.flatMap((service) =>
    service.methods
      .filter((method) => permissionOf(method) === Permission.UNSPECIFIED)
      .map((method) => `${service.typeName}.${method.name}`),
  );
  if (without.length > 0) throw new Error(`RPCs without option (belfry.auth.v1.permission): ${without.join(", ")}`);
}
