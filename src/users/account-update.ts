import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type UserAccount, UserAccountSchema } from "#gen/belfry/users/v1/user_account_pb.ts";
import type { UpdateUserAccountRequest } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { invalidField } from "../errors.ts";
import { changedFields } from "../rpc/update-mask.ts";

/** An update of an account, in whichever form it came. */
export interface AccountUpdate {
  /** Holds the new values of the fields in `changed`; the others mean nothing. */
  account: UserAccount;
  changed: ReadonlySet<keyof UserAccount>;
  /** Where a field of the account is in the request. */
  path(field: "email" | "password" | "firstName" | "lastName" | "groups"): string;
}

const inUser = "user.";

/**
 * Reads an update, whose fields are in `user` or beside it. Its mask may name them either way.
 * @throws code 3 for both forms at once, a mask that names what is no field, a required field that is cleared
 */
export function accountUpdate(request: UpdateUserAccountRequest): AccountUpdate {
  const paths = request.updateMask?.paths ?? [];
  const named = paths.filter((path) => path.startsWith(inUser));
  const nested = request.user !== undefined || named.length > 0;
  const { email, password, firstName, lastName, groups } = request;
  const beside = email !== "" || password !== undefined || firstName !== "" || lastName !== "" || groups.length > 0;
  if (nested && (beside || (named.length > 0 && named.length < paths.length))) {
    throw invalidField(
      "user",
      "must not stand beside fields of the account: send them either in it or without it",
      FieldRule.EXCLUDED,
    );
  }
  const account = nested
    ? (request.user ?? create(UserAccountSchema))
    : create(UserAccountSchema, { email, firstName, lastName, groups, ...(password !== undefined && { password }) });
  const bare = paths.map((path) => (path.startsWith(inUser) ? path.slice(inUser.length) : path));
  const changed = changedFields(UserAccountSchema, account, create(FieldMaskSchema, { paths: bare }));
  const path = (field: string) => (nested ? inUser + field : field);
  if (changed.has("email") && account.email === "")
    throw invalidField(path("email"), "is required", FieldRule.REQUIRED);
  if (changed.has("password") && account.password === undefined)
    throw invalidField(path("password"), "is required", FieldRule.REQUIRED);
  return { account, changed, path };
}
