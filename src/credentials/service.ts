import { randomUUIDv7 } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { type Credential, CredentialInfoSchema, CredentialSchema } from "#gen/belfry/credentials/v1/credential_pb.ts";
import {
  CreateCredentialResponseSchema,
  type CredentialService,
  DeleteCredentialResponseSchema,
  ListCredentialsResponseSchema,
  ReplaceCredentialResponseSchema,
} from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { checkQuota, heldBytes, type Kept, type QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import { checkKeptHosts } from "./allowed-hosts.ts";
import { bindHosts, type HostsInUse } from "./bound-hosts.ts";
import {
  type CredentialRow,
  deleteCredential,
  insertCredential,
  listCredentials,
  lockCredential,
  readCredential,
  refuseUsed,
  updateCredential,
} from "./credentials.ts";
import { credentialTroubles } from "./key-troubles.ts";
import type { Keyring } from "./keyring.ts";
import { checkedSecrets, checkKept } from "./kinds.ts";
import { sealSecrets } from "./secrets.ts";

const kept: Kept = {
  things: "credentials",
  table: "credentials",
  key: "id",
  columns: ["name", "description", "tags", "allowed_api_clients", "allowed_hosts", "bound_hosts"],
};

export function credentialService(
  db: Db,
  bounds: QuotaBounds,
  keyring: Keyring,
  hostsInUse: HostsInUse,
): Partial<ServiceImpl<typeof CredentialService>> {
  return {
    async createCredential({ info = create(CredentialInfoSchema), secrets }, context) {
      const { tenantId } = principalOf(context);
      const checked = checkedSecrets(info.type, secrets);
      const id = randomUUIDv7();
      return await transaction(db, async (tx) => {
        const sealed = await sealSecrets(tx, tenantId, { kind: "credential", id }, checked, keyring);
        const row = await insertCredential(tx, tenantId, id, info, sealed);
        await checkQuota(tx, tenantId, kept, id, bounds);
        await audited(tx, context, id);
        return create(CreateCredentialResponseSchema, { info: await shown(tx, tenantId, row) });
      });
    },

    async listCredentials(request, context) {
      const { tenantId } = principalOf(context);
      const { credentials, ...page } = await listCredentials(db, tenantId, request);
      const ids = credentials.map(({ id }) => id);
      const troubles = await credentialTroubles(db, tenantId, ids, keyring);
      return create(ListCredentialsResponseSchema, {
        ...page,
        credentials: credentials.map((row) => toCredential(row, troubles)),
      });
    },

    async replaceCredential({ id, info = create(CredentialInfoSchema), secrets }, context) {
      const { tenantId } = principalOf(context);
      const checked = checkedSecrets(info.type, secrets);
      const keeps = Object.keys(checked).length === 0;
      return await transaction(db, async (tx) => {
        await bindHosts(tx, tenantId, id, hostsInUse);
        const stored = await lockCredential(tx, tenantId, id);
        // Destinations are checked against the type once, when they begin to use it.
        if (info.type !== stored.type) await refuseUsed(tx, tenantId, id);
        if (keeps) {
          checkKept(info.type, stored.type, stored.secretKeys);
          if (stored.secretKeys.length > 0) checkKeptHosts(info.allowedHosts, stored);
        }
        const owner = { kind: "credential", id };
        const sealed = keeps ? undefined : await sealSecrets(tx, tenantId, owner, checked, keyring);
        const before = await heldBytes(tx, tenantId, kept, id);
        await updateCredential(tx, tenantId, id, info, sealed);
        await bindHosts(tx, tenantId, id, hostsInUse);
        const row = await readCredential(tx, tenantId, id);
        await checkQuota(tx, tenantId, kept, id, bounds, before);
        await audited(tx, context, id);
        return create(ReplaceCredentialResponseSchema, { info: await shown(tx, tenantId, row) });
      });
    },

    async deleteCredential({ id }, context) {
      await transaction(db, async (tx) => {
        await deleteCredential(tx, principalOf(context).tenantId, id);
        await audited(tx, context, id);
      });
      return create(DeleteCredentialResponseSchema, { id });
    },
  };

  async function shown(tx: Db, tenantId: string, row: CredentialRow) {
    return toCredential(row, await credentialTroubles(tx, tenantId, [row.id], keyring));
  }
}

/** A credential as the API shows it: without secrets, with both kinds of uses, also when there are none. */
export function toCredential(
  { id, collections, destinations, ...info }: CredentialRow,
  troubles: ReadonlyMap<string, string> = new Map(),
): Credential {
  const trouble = troubles.get(id) ?? "";
  return create(CredentialSchema, {
    id,
    info: { ...info, trouble, usedBy: { collections: { ids: collections }, destinations: { ids: destinations } } },
  });
}
