import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { afterCommit, transaction } from "../../db/transaction.ts";
import { type Consuming, consumeNext, type Feed, isOfNoFact, type Shown, type Slice } from "./consume-next.ts";
import { type Cursor, lockCursor, moveCursor } from "./cursors.ts";
import { setAside } from "./set-aside.ts";

/** One transaction shows at most this many facts. */
export const factsMax = 1000;
/** A fact that has failed alone this often is set aside. */
const triesMax = 3;
const retryMs = 100;

/** A feed, with the fact that fails alone. */
export interface RetriedFeed extends Feed {
  failing: { place: string; tries: number } | undefined;
}

const placeText = ({ position, done }: Cursor) => `${position}/${done}`;

/**
 * Consumes the next facts of a tenant. After a failure fewer of them are shown, until the one stands alone that fails; after some tries it is
 * set aside. @throws what has nothing to do with the facts
 */
export async function consumeOrRetry(consuming: Consuming, tenantId: string, feed: RetriedFeed): Promise<Slice> {
  try {
    const came = await consumeNext(consuming, tenantId, feed);
    feed.factsMax = Math.min(factsMax, feed.factsMax * 2);
    feed.failing = undefined;
    return came;
  } catch (error) {
    feed.rows = [];
    const { shown } = feed;
    if (isOfNoFact(error) || shown?.first === undefined) throw error;
    if (shown.count > 1) {
      feed.factsMax = Math.ceil(shown.count / 2);
      return "more";
    }
    feed.factsMax = 1;
    const place = placeText(shown.place);
    const tries = feed.failing?.place === place ? feed.failing.tries + 1 : 1;
    feed.failing = { place, tries };
    if (tries < triesMax) {
      await sleep(retryMs * 2 ** tries, undefined, { ref: false });
      return "more";
    }
    await putAside(consuming, tenantId, { ...shown, first: shown.first }, error as Error);
    feed.failing = undefined;
    return "more";
  }
}

/** Sets the fact at a place aside, and moves the cursor behind it, unless another process has done so. */
async function putAside(
  { db, consumer, stats, log, nowMs, oldForm }: Consuming,
  tenantId: string,
  { first: fact, place, storedMs }: Shown & { readonly first: NonNullable<Shown["first"]> },
  error: Error,
): Promise<void> {
  const { name } = consumer;
  // The words of PostgreSQL, or of a mistake in this program, are for the log alone.
  const cause = error instanceof ConnectError ? error.rawMessage : "internal error; the log has its cause";
  await transaction(db, async (tx) => {
    const cursor = await lockCursor(tx, tenantId, name);
    if (cursor === undefined || placeText(cursor) !== placeText(place)) return;
    await setAside(tx, tenantId, name, { fact, cause, storedMs, nowMs: nowMs(), oldForm: oldForm?.() });
    await moveCursor(tx, tenantId, name, { ...cursor, done: cursor.done + 1 });
    afterCommit(tx, () => {
      stats.setAside += 1;
      const event = fact.event.id.toString("base64url");
      log?.error(
        { tenant: tenantId, consumer: name, event, cause: error.message },
        "a change of an event is set aside: consuming it failed again and again",
      );
    });
  });
}
