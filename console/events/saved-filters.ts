import { Code, ConnectError } from "@connectrpc/connect";
import { computed, signal } from "@preact/signals";
import { type EventView, EventViewService } from "#gen/belfry/events/v1/view_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { may, session } from "../data/session.ts";
import { store, stored } from "../data/storage.ts";
import { displayed } from "./query.ts";

const views = clientOf(EventViewService);

type View = Pick<EventView, "name" | "query" | "display">;

/** The parameters of an address as a view holds them. */
export function viewOf(name: string, parameters: URLSearchParams): View {
  const part = (of: boolean) =>
    new URLSearchParams([...parameters].filter(([parameter]) => displayed.has(parameter) === of)).toString();
  return { name, query: part(false), display: part(true) };
}

/** The parameters of the address of a view. */
export const parametersOf = ({ query, display }: View): URLSearchParams =>
  new URLSearchParams([query, display].filter((part) => part !== "").join("&"));

const held = signal<{ session: string; views: readonly EventView[] }>({ session: "", views: [] });

/** The views of the tenant, as they were read last. */
export const saved = computed(() => (held.value.session === session.value?.id ? held.value.views : []));

/** Reads the views of the tenant. */
export async function readViews(signal?: AbortSignal): Promise<void> {
  const of = session.peek()?.id ?? "";
  await shareOwn();
  const { views: found } = await views.listEventViews({}, signal ? { signal } : {});
  held.value = { session: of, views: found };
}

/** Saves a view, or replaces the one of its name. */
export async function saveView(view: View): Promise<void> {
  const known = saved.peek().some(({ name }) => name === view.name);
  await (known ? views.replaceEventView({ view }) : views.createEventView({ view }));
  await readViews();
}

export async function deleteView(name: string): Promise<void> {
  await views.deleteEventView({ name });
  await readViews();
}

const ownName = "saved-filters";

/** Shares what an earlier console has kept in this browser alone; what cannot be shared stays there. */
async function shareOwn(): Promise<void> {
  const text = stored(ownName);
  if (text === null || text === "[]" || !may(EventViewService.method.createEventView)) return;
  // Before anything is asked: who asks meanwhile shares nothing twice.
  store(ownName, null);
  const kept: unknown[] = [];
  for (const each of ownFilters(text)) {
    const view = viewOf(each.name, new URLSearchParams(each.query));
    await views.createEventView({ view }).catch((error) => {
      // A view of this name is there already.
      if (ConnectError.from(error).code !== Code.AlreadyExists) kept.push(each);
    });
  }
  if (kept.length > 0) store(ownName, JSON.stringify(kept));
}

function ownFilters(text: string): { name: string; query: string }[] {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}
