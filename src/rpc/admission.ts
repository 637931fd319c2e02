import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Callers } from "../auth/callers.ts";
import { hasUnreadKey, keyHeader } from "../auth/key-headers.ts";
import { holdersOf, permits } from "../auth/permission.ts";
import type { Principal } from "../auth/principal.ts";
import { credentialOf, isOwnPage } from "../auth/session-cookie.ts";
import { permissionDenied, unauthenticated } from "../errors.ts";
import type { RecordedRequest, RequestRecord } from "./context.ts";

/** What the admission of a call needs to know of it. */
export interface AdmittedCall {
  /** In refusals. */
  readonly name: string;
  readonly permission: Permission;
  /** Whether there is room for it, before its body is read. @throws code 8 when there is none */
  room(header: Headers, principal: Principal, record: RequestRecord): void;
}

/** Key → principal → permission → room, before a byte of the body is read. @throws what it is refused with */
export type Admit = (
  call: AdmittedCall,
  header: Headers,
  record: RequestRecord,
  request: RecordedRequest | undefined,
) => Promise<void>;

/** Admits calls by their keys and sessions. */
export function admission({ verify, onSessionUse, publicOrigin }: Callers): Admit {
  function checkOwnPage(request: RecordedRequest | undefined) {
    if (request !== undefined && isOwnPage(request, publicOrigin)) return;
    throw permissionDenied(
      "sessions are made by this service's own pages, with JSON, Connect or gRPC-Web: Sec-Fetch-Site must be same-origin",
    );
  }

  return async (call, header, record, request) => {
    // Whoever it is for is proved by the request itself, which has to be of one of our pages.
    if (call.permission === Permission.SIGN_IN) return checkOwnPage(request);
    record.credential = credentialOf(header.get(keyHeader), request, publicOrigin);
    if (!record.credential && request !== undefined && hasUnreadKey(request.headers))
      throw unauthenticated(
        "an API key is needed: send it in the header service-api-key, or as Authorization: Bearer; x-api-key and Basic are not read here",
        ErrorReason.KEY_MISSING,
      );
    const principal = await verify(record.credential, record.address);
    record.principal = principal;
    if (principal.sessionId !== undefined) onSessionUse?.(principal);
    if (!permits(call.permission, principal))
      throw permissionDenied(`${who(principal)} may not call ${call.name}; who may: ${holdersOf(call.permission)}`);
    call.room(header, principal, record);
  };
}

function who(principal: { clientType: string; role: string | null }) {
  return principal.role === null ? `a client of type ${principal.clientType}` : `a client of role ${principal.role}`;
}
