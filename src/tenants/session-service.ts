import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import {
  type CreateSessionRequest,
  CreateSessionResponseSchema,
  DeleteSessionResponseSchema,
  GetSessionResponseSchema,
  type Session,
  SessionSchema,
  type SessionService,
} from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { redeemLink } from "../auth/console-links.ts";
import { type KeyVerifier, readKey } from "../auth/key-verifier.ts";
import type { Principal } from "../auth/principal.ts";
import { proofHeader, provenSession, setCookie } from "../auth/session-cookie.ts";
import type { SessionVerifier } from "../auth/session-verifier.ts";
import { createSession, endSession, readSession, type SessionBounds, type SessionRow } from "../auth/sessions.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { notFound, unauthenticated } from "../errors.ts";
import { callRecord, principalOf } from "../rpc/context.ts";
import { audited } from "./audit.ts";
import { noteFirstSession } from "./tenant.ts";

interface Options {
  keys: KeyVerifier;
  sessions: SessionVerifier;
  bounds: SessionBounds;
}

/** Sessions of the console. */
export function sessionService(db: Db, options: Options): Partial<ServiceImpl<typeof SessionService>> {
  const { keys, sessions, bounds } = options;

  /** The principal of a link, which is used up in the same transaction. @throws code 16 */
  async function ofLink(tx: Db, token: string): Promise<Principal> {
    const owner = await redeemLink(tx, token);
    const row = await readKey(tx, owner);
    if (row === undefined)
      throw unauthenticated(
        "the API key of the link was revoked or has expired; use another key",
        ErrorReason.KEY_INVALID,
      );
    const { digest: _, ...client } = row;
    return { ...client, ...owner };
  }

  /** The session that the browser had before: the new one takes its cookie. */
  async function sessionBefore(context: HandlerContext): Promise<Principal | undefined> {
    const { requestHeader } = context;
    try {
      const proven = provenSession(requestHeader.get("cookie"), requestHeader.get(proofHeader));
      return proven === undefined ? undefined : await sessions.verify(proven, callRecord(context).address);
    } catch {
      return undefined;
    }
  }

  async function made({ proof }: CreateSessionRequest, context: HandlerContext) {
    const before = await sessionBefore(context);
    // A wrong key takes no connection.
    const ofKey = proof.case === "firstToken" ? undefined : await keys.verify(proof.value);
    return await transaction(db, async (tx) => {
      const principal = ofKey ?? (await ofLink(tx, proof.value ?? ""));
      const { id, text, proof: pageProof } = await createSession(tx, principal, bounds);
      await noteFirstSession(tx, principal.tenantId);
      if (before?.sessionId !== undefined) await endSession(tx, before.tenantId, before.sessionId);
      callRecord(context).principal = { ...principal, sessionId: id };
      await audited(tx, context, id);
      const row = await readSession(tx, { tenantId: principal.tenantId, id }, bounds);
      if (row === undefined) throw unauthenticated("the API key has expired", ErrorReason.KEY_INVALID);
      return { session: toSession(id, row), text, pageProof, before };
    });
  }

  return {
    async createSession(request, context) {
      const { session, text, pageProof, before } = await made(request, context);
      if (before?.sessionId !== undefined) sessions.forget(before.tenantId, before.sessionId);
      context.responseHeader.append("set-cookie", setCookie(text, bounds.sessionAgeMsMax));
      return create(CreateSessionResponseSchema, { session, pageProof });
    },

    async getSession(_request, context) {
      const { tenantId, sessionId: id } = principalOf(context);
      const row = id === undefined ? undefined : await readSession(db, { tenantId, id }, bounds);
      if (id === undefined || row === undefined) throw notFound("session", "current");
      return create(GetSessionResponseSchema, { session: toSession(id, row) });
    },

    async deleteSession(_request, context) {
      const { tenantId, sessionId } = principalOf(context);
      if (sessionId === undefined) throw notFound("session", "current");
      await transaction(db, async (tx) => {
        await endSession(tx, tenantId, sessionId);
        await audited(tx, context, sessionId);
      });
      sessions.forget(tenantId, sessionId);
      context.responseHeader.append("set-cookie", setCookie("", 0));
      return create(DeleteSessionResponseSchema);
    },
  };
}

function toSession(id: string, row: SessionRow): Session {
  return create(SessionSchema, {
    id,
    tenant: row.tenantName,
    client: row.clientName,
    clientType: ApiClientType[row.clientType],
    role: row.role ?? "",
    keyPrefix: row.keyPrefix,
    expireTime: timestampFromMs(Number(row.endsMs)),
  });
}
