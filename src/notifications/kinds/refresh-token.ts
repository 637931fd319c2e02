import type { DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import { openSealed, sealSecrets } from "../../credentials/secrets.ts";
import type { Db } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import type { ExchangedSecret } from "./access-tokens.ts";
import { secretOwner } from "./secrets.ts";

/** The path of a refresh token within a destination's type. */
export const refreshTokenPath = "itsm.oauth.refreshToken";

/**
 * The refresh token of a stored destination, as long as it is exchanged where `type` says; what replaces it is kept unless
 * the destination has lost it, or was given another one for another place, meanwhile.
 */
export function storedRefreshToken(
  db: Db,
  tenantId: string,
  name: string,
  { type }: DestinationType,
  keyring: Keyring,
): ExchangedSecret {
  const oauth = type.case === "itsm" && type.value.authorization.case === "oauth" && type.value.authorization.value;
  const tokenUrl = oauth ? oauth.tokenUrl : "";
  return {
    async read() {
      const [row] = await db<{ sealed: string | null }[]>`
        select secrets ->> ${refreshTokenPath} as sealed from destinations
        where tenant_id = ${tenantId} and name = ${name} and type #>> '{itsm,oauth,tokenUrl}' = ${tokenUrl}`;
      if (row?.sealed == null) return "";
      const opened = await openSealed(db, tenantId, secretOwner(name), { [refreshTokenPath]: row.sealed }, keyring);
      return opened[refreshTokenPath] ?? "";
    },
    async store(secret) {
      await transaction(db, async (tx) => {
        const sealed = await sealSecrets(tx, tenantId, secretOwner(name), { [refreshTokenPath]: secret }, keyring);
        await tx`
          update destinations set secrets = secrets || ${tx.json(sealed)}::jsonb
          where tenant_id = ${tenantId} and name = ${name} and type #>> '{itsm,oauth,tokenUrl}' = ${tokenUrl}
            and secrets ->> ${refreshTokenPath} is not null`;
      });
    },
  };
}

/** One that is in a request alone: what replaces it lives as long as the call. */
export function givenRefreshToken(token: string): ExchangedSecret {
  let current = token;
  return {
    read: async () => current,
    store: async (secret) => {
      current = secret;
    },
  };
}
