import type { Keyring } from "../../credentials/keyring.ts";
import type { Db } from "../../db/connect.ts";
import type { Log } from "../../log.ts";
import type { AttemptOutcome } from "../kinds/attempt-outcome.ts";
import { send } from "../kinds/kinds.ts";
import { storedRefreshToken } from "../kinds/refresh-token.ts";
import { courseOf, type FailureReason } from "../kinds/retry.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";
import { recipientsSoFar } from "../queue/attempts.ts";
import type { Ready } from "./prepare.ts";

export interface SenderOptions {
  /** For refresh tokens that a receiver exchanges. */
  readonly db: Db;
  readonly keyring: Keyring;
  readonly world: SendEnvironment;
  readonly log: Log;
  /** Absent: the kinds' own. */
  readonly send?: typeof send;
}

/** One try of one delivery. Never rejects: what fails in this service is an outcome as well, and the log says more. */
export async function attempt(
  { row, destination, notification, state }: Ready,
  { db, keyring, world, log, send: sendBy = send }: SenderOptions,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  const { tenant } = notification;
  const failed = (reason: FailureReason, answer: string): AttemptOutcome => ({
    result: "failed",
    reason,
    course: courseOf("webhook", reason),
    answer,
    state,
  });
  if (destination instanceof Error) return failed("secrets", destination.message);
  try {
    return await sendBy(
      {
        ...destination,
        destinationKey: `${tenant.id}/${row.destinationName}`,
        notification,
        state,
        recipients: recipientsSoFar(row.attempts, row.retriedMs),
        refreshToken: storedRefreshToken(db, tenant.id, row.destinationName, destination.type, keyring),
        signal,
      },
      world,
    );
  } catch (error) {
    const { destinationName, id } = row;
    const place = { tenant: tenant.id, destination: destinationName, delivery: id };
    log.error({ cause: (error as Error).message, ...place }, "a try has failed");
    return failed("internal", "an error of this service");
  }
}
