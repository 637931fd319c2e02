import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { UserAccountSchema } from "#gen/belfry/users/v1/user_account_pb.ts";
import {
  CreateUserAccountResponseSchema,
  DeleteUserAccountResponseSchema,
  GetUserAccountResponseSchema,
  ListUserAccountsResponseSchema,
  SearchUserAccountIdsResponseSchema,
  UpdateUserAccountResponseSchema,
  type UserAccountService,
} from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { checkQuota, type Kept, type QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { holderOf, principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import {
  accountUpdate,
  changeAccount,
  deleteAccount,
  insertAccount,
  listAccounts,
  readAccount,
  refuseTaken,
  searchIds,
} from "./account-rows.ts";
import { toUserAccount } from "./messages.ts";
import { checkPassword, type HashPassword } from "./password.ts";

const kept: Kept = { things: "user accounts", table: "user_accounts", key: "id", columns: ["email"] };

/** The accounts of people. */
export function userAccountService(
  db: Db,
  bounds: QuotaBounds,
  hash: HashPassword,
): Partial<ServiceImpl<typeof UserAccountService>> {
  return {
    async createUserAccount({ user = create(UserAccountSchema) }, context) {
      const { tenantId } = principalOf(context);
      const password = user.password ?? ""; // the proto's rules refuse a missing one
      checkPassword(password, "user.password");
      // The unique index decides; this check spares most concurrent requests for the same e-mail the costly hash.
      const wanted = () => refuseTaken(db, tenantId, user.email, null);
      const passwordHash = await hash(holderOf(context), password, context.signal, wanted);
      return await transaction(db, async (tx) => {
        const made = await insertAccount(tx, tenantId, { ...user, passwordHash }, "user.groups");
        await checkQuota(tx, tenantId, kept, made.id, bounds);
        await audited(tx, context, made.id);
        return create(CreateUserAccountResponseSchema, { user: toUserAccount(made) });
      });
    },

    async getUserAccount({ id }, context) {
      const row = await readAccount(db, principalOf(context).tenantId, id);
      return create(GetUserAccountResponseSchema, { user: toUserAccount(row) });
    },

    async listUserAccounts(request, context) {
      const { accounts, ...page } = await listAccounts(db, principalOf(context).tenantId, request);
      return create(ListUserAccountsResponseSchema, { ...page, users: accounts.map(toUserAccount) });
    },

    async updateUserAccount(request, context) {
      const { id } = request;
      const { tenantId } = principalOf(context);
      const update = accountUpdate(request);
      let passwordHash: string | null = null;
      if (update.changed.has("password")) {
        const password = update.account.password ?? "";
        checkPassword(password, update.path("password"));
        passwordHash = await hash(holderOf(context), password, context.signal, () => readAccount(db, tenantId, id));
      }
      return await transaction(db, async (tx) => {
        const row = await changeAccount(tx, tenantId, id, update, passwordHash);
        await audited(tx, context, id);
        return create(UpdateUserAccountResponseSchema, { user: toUserAccount(row) });
      });
    },

    async deleteUserAccount({ id }, context) {
      await transaction(db, async (tx) => {
        await deleteAccount(tx, principalOf(context).tenantId, id);
        await audited(tx, context, id);
      });
      return create(DeleteUserAccountResponseSchema);
    },

    async searchUserAccountIds(request, context) {
      const ids = await searchIds(db, principalOf(context).tenantId, request.user ?? request);
      return create(SearchUserAccountIdsResponseSchema, { ids });
    },
  };
}
