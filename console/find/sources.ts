import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { clientOf, type Failure, failureOfOneRead } from "../data/calls.ts";
import { may } from "../data/session.ts";
import { parametersOf, readViews, saved } from "../events/saved-filters.ts";
import type { Screen } from "../frame/screen.ts";
import { type Found, holdsAll, ofKindMax, type Source } from "./found.ts";

/** The screens and their sections, which are known without the server. */
export async function placesOf(screens: readonly Screen[]): Promise<Found[]> {
  void readViews().catch(() => undefined);
  const places = screens.map(async ({ name, label, sections }): Promise<Found[]> => {
    if (label === undefined) return [];
    const within = Object.entries((await sections?.().catch(() => undefined)) ?? {});
    return [
      { kind: "Screens", name: label, hash: linkTo([name]) },
      ...within.map(([section, of]) => ({
        kind: "Screens",
        name: of.label,
        beside: label,
        hash: linkTo([name, section]),
      })),
    ];
  });
  return (await Promise.all(places)).flat();
}

const filters = (): Found[] =>
  saved.value.map((view) => ({
    kind: "Views",
    name: view.name,
    hash: linkTo(["events"], parametersOf(view)),
  }));

/** What this page has and whose name holds all the words; without words, all of it. */
export function foundHere(places: readonly Found[], words: string): Found[] {
  return [...places, ...filters()].filter((each) => holdsAll(each, words));
}

const named = (words: string) =>
  create(ClauseSchema, {
    filter: { field: "name", operation: Operation.OP_TEXT, value: { kind: { case: "stringValue", value: words } } },
  });

const entities = clientOf(EntityService);
const windows = clientOf(MaintenanceWindowService);
const rules = clientOf(RuleService);
const triggers = clientOf(TriggerService);
const destinations = clientOf(DestinationService);

const sources: readonly Source[] = [
  {
    method: EntityService.method.searchEntities,
    async find(words, signal) {
      const searchInput = { query: { clause: named(words) }, pageInput: { limit: ofKindMax } };
      const answer = await entities.searchEntities({ searchInput }, { signal });
      return (answer.entities?.entities ?? []).map(({ id, name, schemaIds }) => ({
        kind: "Entities",
        name,
        beside: schemaIds.at(-1) ?? "",
        hash: linkTo(["entities", id]),
      }));
    },
  },
  {
    method: RuleService.method.listRules,
    find: async (name, signal) =>
      things("rules", "Rules", (await rules.listRules({ name, pageSize: ofKindMax }, { signal })).rules),
  },
  {
    method: TriggerService.method.listTriggers,
    find: async (name, signal) =>
      things("triggers", "Triggers", (await triggers.listTriggers({ name, pageSize: ofKindMax }, { signal })).triggers),
  },
  {
    method: DestinationService.method.listDestinations,
    async find(name, signal) {
      const answer = await destinations.listDestinations({ name, pageSize: ofKindMax }, { signal });
      return things("destinations", "Destinations", answer.destinations);
    },
  },
  {
    method: MaintenanceWindowService.method.searchMaintenanceWindows,
    async find(words, signal) {
      const searchInput = { query: { clause: named(words) }, pageInput: { limit: ofKindMax } };
      const { maintWindows } = await windows.searchMaintenanceWindows({ searchInput }, { signal });
      return maintWindows.map(({ id, name }) => ({ kind: "Maintenance", name, hash: linkTo(["windows", id]) }));
    },
  },
];

const things = (section: string, kind: string, all: readonly { name: string }[]): Found[] =>
  all.map(({ name }) => ({ kind, name, hash: linkTo(["rules", section, name]) }));

/** What the server knows by some words. */
interface FoundThere {
  readonly words: string;
  readonly found: readonly Found[];
  /** Why a kind could not be searched. */
  readonly failure: Failure | undefined;
}

/** The list of the events whose names hold the words. */
const eventsNamed = (words: string): Found => {
  const where = { filter: { field: "name", operation: "OP_CONTAINS", value: words } };
  const hash = linkTo(["events"], { where: JSON.stringify(where), status: "any" });
  return { kind: "Events", name: `Events with "${words}" in their names`, hash };
};

/** What the server knows by these words, of all kinds that the key may read. @throws when no kind could be searched */
export async function foundThere(words: string, signal: AbortSignal): Promise<FoundThere> {
  if (words.trim() === "") return { words, found: [], failure: undefined };
  const { settingsSources } = await import("./settings.ts");
  const asked = [...sources, ...settingsSources].filter(({ method }) => may(method));
  const answers = await Promise.allSettled(asked.map(({ find }) => find(words.trim(), signal)));
  const found = [
    ...answers.flatMap((each) => (each.status === "fulfilled" ? each.value : [])),
    ...(may(EventQueryService.method.searchEvents) ? [eventsNamed(words.trim())] : []),
  ];
  const [failed] = answers.filter((each) => each.status === "rejected");
  if (failed !== undefined && answers.every(({ status }) => status === "rejected")) throw failed.reason;
  return { words, found, failure: failed && failureOfOneRead(failed.reason) };
}
