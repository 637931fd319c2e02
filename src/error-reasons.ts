import { create } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { ErrorReason, ErrorReasonSchema, FieldRule, FieldRuleSchema } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";

/** The name by which programs know a rule. */
export function ruleId(rule: FieldRule): string {
  return FieldRuleSchema.value[rule]?.name ?? "";
}

/** A field that breaks a rule, as an error lists it. */
export interface Violation {
  field: string;
  description: string;
  reason: string;
}

/** The line that stands for mistakes that are not listed. */
export function moreMistakes(count: number): Violation {
  return { field: "", description: `has ${count} more mistakes`, reason: ruleId(FieldRule.MORE_MISTAKES) };
}

const reasons = new WeakMap<ConnectError, ErrorReason>();

/** Notes the reason of an error for programs, where its code does not say it. Returns the error. */
export function withReason(error: ConnectError, reason: ErrorReason | undefined): ConnectError {
  if (reason !== undefined) reasons.set(error, reason);
  return error;
}

/** Returns the reason of an error: the one noted for it, else that of its code. */
function reasonOf(error: ConnectError): ErrorReason {
  return reasons.get(error) ?? reasonOfCode(error.code, error.details.length > 0);
}

/** `detailed`: fields, or a time to wait for, are named in the details. */
function reasonOfCode(code: Code, detailed: boolean): ErrorReason {
  if (code === Code.InvalidArgument) return detailed ? ErrorReason.INVALID_FIELD : ErrorReason.MALFORMED_REQUEST;
  if (code === Code.ResourceExhausted) return detailed ? ErrorReason.OVERLOADED : ErrorReason.LIMIT_REACHED;
  return reasonsByCode[code] ?? ErrorReason.INTERNAL;
}

const reasonsByCode: Readonly<Partial<Record<Code, ErrorReason>>> = {
  [Code.Canceled]: ErrorReason.CANCELLED,
  [Code.DeadlineExceeded]: ErrorReason.DEADLINE_EXCEEDED,
  [Code.NotFound]: ErrorReason.RESOURCE_NOT_FOUND,
  [Code.AlreadyExists]: ErrorReason.RESOURCE_EXISTS,
  [Code.PermissionDenied]: ErrorReason.PERMISSION_DENIED,
  [Code.FailedPrecondition]: ErrorReason.WRONG_STATE,
  [Code.Aborted]: ErrorReason.COLLISION,
  [Code.Unimplemented]: ErrorReason.NOT_IMPLEMENTED,
  [Code.Unavailable]: ErrorReason.UNAVAILABLE,
  [Code.Unauthenticated]: ErrorReason.UNAUTHENTICATED,
};

/** The detail that tells programs a reason. */
function infoOf(reason: ErrorReason) {
  return { reason: ErrorReasonSchema.value[reason]?.name ?? "", domain: "belfry" };
}

/** The same for an error that is answered without a ConnectError. */
export function infoOfCode(code: Code, reason: ErrorReason = reasonOfCode(code, false)) {
  return { "@type": `type.googleapis.com/${ErrorInfoSchema.typeName}`, ...infoOf(reason), metadata: {} };
}

/** Adds the reason to the details of an error of ours, behind the others, once: where it leaves over any protocol of ours. */
export function reasoned(error: ConnectError): ConnectError {
  if (!error.details.some((detail) => "desc" in detail && detail.desc === ErrorInfoSchema))
    error.details.push({ desc: ErrorInfoSchema, value: create(ErrorInfoSchema, infoOf(reasonOf(error))) });
  return error;
}
