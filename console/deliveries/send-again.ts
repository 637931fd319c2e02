import { type Delivery, DeliveryService, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { clientOf } from "../data/calls.ts";

const deliveries = clientOf(DeliveryService);
const lookAgainMs = 1000;
/** Most looks for the answer of a receiver. */
const looksMax = 30;
/** Of how many deliveries that are sent again the answers are looked for, the newest first. */
const followedMax = 100;

const pause = () => new Promise((resolve) => setTimeout(resolve, lookAgainMs));

/** Returns the receiver's last answer, or the reason for which it could not be asked. */
export const lastAnswer = ({ tries, error }: Delivery) => tries.at(-1)?.answer || tries.at(-1)?.reason || error;

/** Sends a delivery again, and returns it as the next attempt has left it. */
export async function sendAgain(id: string): Promise<Delivery | undefined> {
  let { delivery: now } = await deliveries.retryDelivery({ id });
  const attempts = now?.attempts ?? 0;
  for (let looks = 0; looks < looksMax; looks += 1) {
    if (now === undefined || now.status !== DeliveryStatus.PENDING || now.attempts > attempts) return now;
    await pause();
    ({ delivery: now } = await deliveries.getDelivery({ id }));
  }
  return now;
}

/** Outcome of deliveries that were sent again. */
export interface SentAgain {
  readonly retried: number;
  readonly unneeded: number;
  /** Of how many of them, the first, what follows is known. */
  readonly followed: number;
  readonly sent: number;
  readonly failed: number;
  /** Answer of a receiver that refused one. */
  readonly answer: string;
}

/** Sends all failed deliveries to a destination again, and reports as answers come, until each was tried. */
export async function sendAllAgain(destination: string, report: (now: SentAgain) => void): Promise<void> {
  let [retried, unneeded] = [0, 0];
  const ids = new Set<string>();
  for (let left = true; left; ) {
    const answer = await deliveries.retryDeliveries({ destination });
    retried += Number(answer.retriedCount);
    // They stay failed, so each call counts them.
    unneeded = Math.max(unneeded, Number(answer.unneededCount));
    for (const id of answer.deliveryIds) if (ids.size < followedMax) ids.add(id);
    left = answer.remainingCount > 0n && answer.retriedCount > 0n;
    report({ retried, unneeded, followed: ids.size, sent: 0, failed: 0, answer: "" });
  }
  const startedMs = Date.now();
  const triedSince = ({ tries }: Delivery) => Number(tries.at(-1)?.time?.seconds ?? 0n) * 1000 >= startedMs - 60_000;
  for (let looks = 0; looks < looksMax && ids.size > 0; looks += 1) {
    await pause();
    const page = await deliveries.listDeliveries({ destination, pageSize: 1000 });
    const ours = page.deliveries.filter(({ id }) => ids.has(id));
    const sent = ours.filter(({ status }) => status === DeliveryStatus.SENT || status === DeliveryStatus.SUMMARISED);
    const failed = ours.filter((each) => !sent.includes(each) && triedSince(each));
    const answer = failed[0] === undefined ? "" : lastAnswer(failed[0]);
    report({ retried, unneeded, followed: ids.size, sent: sent.length, failed: failed.length, answer });
    if (sent.length + failed.length >= ours.length) return;
  }
}
