import { signal } from "@preact/signals";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";

/** The query of what is open and not acknowledged. */
export const unacknowledged = {
  statuses: [Status.OPEN, Status.DEFAULT],
  clause: {
    filter: {
      field: "acknowledged",
      operation: Operation.OP_EQUALS,
      value: { kind: { case: "boolValue" as const, value: false } },
    },
  },
};

/** Counts the critical ones among these. */
export const criticalCount = signal(0n);
