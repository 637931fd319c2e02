import { Code, ConnectError } from "@connectrpc/connect";
import { effect, signal, untracked } from "@preact/signals";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { alertsOn } from "./alerts.ts";
import { clientOf, refused } from "./calls.ts";
import { inSight } from "./in-sight.ts";
import { session } from "./session.ts";

/**
 * What changes, as it happens. One tab of a browser watches and the others hear it: over HTTP/1.1 a browser has six connections
 * to a host. The tab that holds the lock watches, while it is in sight or notifies of what comes; then the next one that is takes
 * it over at the last cursor. The watch carries ids alone; each tab asks for the rows that it shows.
 */
export type LiveState = "live" | "connecting" | "away" | "hidden";
export const liveState = signal<LiveState>("connecting");

/** True in the tab that watches for all tabs of the browser. */
export const watchesHere = signal(false);

/** What is heard: the ids of events that changed, or that changes were missed and lists are to be read again. */
type News = { readonly eventIds: readonly string[] } | { readonly missed: true };
type Heard = News & { readonly cursor: string; readonly session: string };

const events = clientOf(EventQueryService);
const listeners = new Set<(news: News) => void>();
let tabs: BroadcastChannel | undefined;
let cursor = "";

/** Calls `listener` with all that changes from now on. Returns the end of that. */
export function onNews(listener: (news: News) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function hear(news: News, at: string): void {
  if (at !== "") cursor = at;
  for (const listener of listeners) listener(news);
}

function hearTabs({ data }: MessageEvent<Heard>): void {
  if (data.session !== session.value?.id) return;
  if (ending !== undefined) liveState.value = "live";
  hear(data, data.cursor);
}

/** Says it here and in the other tabs. */
function say(news: News, at: string): void {
  hear(news, at);
  tabs?.postMessage({ ...news, cursor: at, session: session.value?.id ?? "" } satisfies Heard);
}

/** Watches until `ended`, again and again; the wait between attempts grows to ten seconds. */
async function watch(ended: AbortSignal): Promise<void> {
  let waitMs = 250;
  while (!ended.aborted) {
    try {
      liveState.value = "connecting";
      const query = { fields: [{ field: "id" }] };
      let fromNow = cursor === "";
      for await (const { event, cursor: at } of events.watchEvents({ query, cursor }, { signal: ended })) {
        liveState.value = "live";
        waitMs = 250;
        // What was stored between a list's search and a watch that begins now is in neither of them.
        say(fromNow ? { missed: true } : { eventIds: event === undefined ? [] : [event.id] }, at);
        fromNow = false;
      }
    } catch (error) {
      if (ended.aborted) return;
      const { code } = ConnectError.from(error);
      if (code === Code.Unauthenticated) return refused();
      if (code === Code.PermissionDenied) return;
      liveState.value = "away";
      // An old cursor, or a reader that was too slow: what was missed is read again from the lists.
      if (code === Code.InvalidArgument || code === Code.ResourceExhausted) {
        cursor = "";
        say({ missed: true }, "");
      }
    }
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    waitMs = Math.min(waitMs * 2, 10_000);
  }
}

let ending: AbortController | undefined;

function leave(): void {
  ending?.abort();
  ending = undefined;
  watchesHere.value = false;
}

/** Takes part in the watch while there is a session, and the tab is in sight or notifies of what comes. */
function attend(): void {
  const wanted = session.value != null && (inSight.value || alertsOn.value);
  if (wanted === (ending !== undefined)) return;
  leave();
  liveState.value = wanted ? "connecting" : "hidden";
  if (!wanted) return;
  ending = new AbortController();
  const { signal } = ending;
  // The lock is of a session: tabs that are logged in with another one later watch by themselves.
  const watchForAll = async () => {
    watchesHere.value = true;
    await watch(signal);
  };
  navigator.locks.request(`belfry.live.${session.value?.id}`, { signal }, watchForAll).catch(() => undefined);
}

/** Held by each tab in sight: the others of the browser find out by it that there is one. */
const sightLock = "belfry.in-sight";

/** Does something unless a tab of this browser is in sight. */
export async function unlessSeen(act: () => void): Promise<void> {
  await navigator.locks.request(sightLock, { ifAvailable: true }, (free) => {
    if (free !== null) act();
  });
}

/** Watches with the other tabs from now on. Called once, at the start. */
export function startLive(): void {
  tabs = new BroadcastChannel("belfry.live");
  tabs.onmessage = hearTabs;
  let of: string | undefined;
  effect(() => {
    const id = session.value?.id;
    if (id !== of) {
      leave();
      cursor = "";
      of = id;
    }
    attend();
  });
  effect(() => {
    if (!inSight.value || !session.peek()) return;
    untracked(() => {
      for (const listener of listeners) listener({ missed: true });
    });
  });
  effect(() => {
    if (!inSight.value || session.value == null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    void navigator.locks.request(sightLock, { mode: "shared" }, () => promise);
    return resolve;
  });
}
