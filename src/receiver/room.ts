import type { DescMethod } from "@bufbuild/protobuf";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Principal } from "../auth/principal.ts";
import type { Holder } from "../limiter.ts";
import type { RequestRecord } from "../rpc/context.ts";
import type { IngestQueue } from "./ingest-queue.ts";
import { laneOf } from "./service.ts";

/** What refuses overload before a body is read: each throws code 8. */
interface Bounds {
  bodies: { check(who: Holder, contentLength: string | null): void };
  answers: { check(record: RequestRecord): void };
  ingest: Pick<IngestQueue, "check">;
  /** Events are bounded by what rules still have to look at, too. */
  checkRules(tenantId: string): void;
}

/** Whether there is room for a call that is allowed: for its body, its answer, and what it sends. @throws code 8 */
export function roomForCalls({ bodies, answers, ingest, checkRules }: Bounds) {
  /** For one that sends to this lane, if to any. */
  function inLane(lane: string | undefined, header: Headers, { tenantId, keyId }: Principal, call: RequestRecord) {
    bodies.check({ tenant: tenantId, key: keyId }, header.get("content-length"));
    answers.check(call);
    if (lane !== undefined) ingest.check(tenantId, lane);
    if (lane === "events") checkRules(tenantId);
  }
  return {
    inLane,
    ofRpc(method: DescMethod, header: Headers, principal: Principal, call: RequestRecord) {
      inLane(method.parent === DataReceiverService ? laneOf[method.localName] : undefined, header, principal, call);
      if (method.parent === EventManagementService) checkRules(principal.tenantId);
    },
  };
}
