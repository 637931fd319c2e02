import { Code, ConnectError } from "@connectrpc/connect";
import { effect, signal } from "@preact/signals";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf, refused } from "./calls.ts";
import { session } from "./session.ts";

/**
 * What changes, as it happens. One tab of a browser watches and the others hear it: over HTTP/1.1 a browser has six connections
 * to a host. The tab that holds the lock watches, while it is in sight; then the next one that is takes it over at the
 * last cursor. The watch carries ids alone; each tab asks for the rows that it shows.
 */
export type LiveState = "live" | "connecting" | "away" | "hidden";
export const liveState = signal<LiveState>("connecting");

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
  if (document.visibilityState === "visible") liveState.value = "live";
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

/** Takes part in the watch while the tab is in sight and there is a session. */
function attend(): void {
  const wanted = session.value != null && document.visibilityState === "visible";
  if (wanted === (ending !== undefined)) return;
  ending?.abort();
  ending = undefined;
  liveState.value = wanted ? "connecting" : "hidden";
  if (!wanted) return;
  ending = new AbortController();
  const { signal } = ending;
  // The lock is of a session: tabs that are logged in with another one later watch by themselves.
  navigator.locks.request(`belfry.live.${session.value?.id}`, { signal }, () => watch(signal)).catch(() => undefined);
}

/** Watches with the other tabs from now on. Called once, at the start. */
export function startLive(): void {
  tabs = new BroadcastChannel("belfry.live");
  tabs.onmessage = hearTabs;
  document.addEventListener("visibilitychange", () => {
    attend();
    if (document.visibilityState === "visible" && session.value)
      for (const listener of listeners) listener({ missed: true });
  });
  let of: string | undefined;
  effect(() => {
    const id = session.value?.id;
    if (id !== of) {
      ending?.abort();
      ending = undefined;
      cursor = "";
      of = id;
    }
    attend();
  });
}
