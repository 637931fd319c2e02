import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type EntitySearchSchema,
  Order,
  SearchEntitiesRequestSchema,
} from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { idText } from "../../src/entities/identity.ts";
import { rackNames, rackSize, seeded } from "./entities.ts";
import type { Ids } from "./entity-table.ts";

type Init = MessageInitShape<typeof ClauseSchema>;
type Search = Omit<MessageInitShape<typeof EntitySearchSchema>, "query" | "$typeName">;

/** A question in many variants that have about as many answers. */
export interface Question {
  name: string;
  /**
   * Each encoded, and decoded again for each time it is asked. Where messages live long V8 allocates new ones, too, among old
   * objects, and collections took ten times as long as in a server.
   */
  requests: Uint8Array[];
  /** Whether the number of matches is the same whatever the number of entities. */
  steady: boolean;
}

function value(of: string | number | boolean) {
  if (typeof of === "string") return { kind: { case: "stringValue" as const, value: of } };
  if (typeof of === "number") return { kind: { case: "numberValue" as const, value: of } };
  return { kind: { case: "boolValue" as const, value: of } };
}

const filter = (field: string, operation: Operation, of: string | number | boolean): Init => ({
  filter: { field, operation, value: value(of) },
});
const equals = (field: string, of: string | number | boolean) => filter(field, Operation.OP_EQUALS, of);
const begins = (field: string, of: string) => filter(field, Operation.OP_STARTS_WITH, of);

const variants = 40;

/** The questions over the `count` entities of these ids. */
export function questions(count: number, ids: Ids): Question[] {
  const random = seeded(7);
  const below = (bound: number) => Math.floor(random() * bound);
  const rack = () => rackNames(below(count / rackSize));
  const rackEquals = () => equals("dimensions.rack", rack().rack);
  const zone = () => equals("dimensions.zone", `zone-${below(10)}${below(10)}`);

  function ask(name: string, clause: () => Init, steady = true, search: () => Search = () => ({})): Question {
    const requests = Array.from({ length: variants }, () =>
      toBinary(
        SearchEntitiesRequestSchema,
        create(SearchEntitiesRequestSchema, { searchInput: { query: { clause: clause() }, ...search() } }),
      ),
    );
    return { name, requests, steady };
  }
  function fiveOf(): Init[] {
    return [
      rackEquals(),
      {
        anyOf: {
          clauses: [equals("customProperties.system", "debian-13"), equals("customProperties.system", "rhel-10")],
        },
      },
      { noneOf: { clause: equals("customProperties.critical", true) } },
      begins("dimensions.zone", "zone-"),
      { range: { path: "customProperties.cores", gte: value(4) } },
    ];
  }
  const costs = () => 1000 + below(count / 20 - 3);
  const anyIds = () => {
    const places = new Set<number>();
    while (places.size < Math.min(1000, ids.length)) places.add(below(ids.length));
    return [...places].map((at) => idText(ids[at] as Buffer));
  };
  return [
    ask("equality on a dimension, 50 matches", rackEquals),
    ask("prefix on name, 50", () => begins("name", rack().name)),
    ask("prefix on a dimension, 50", () => begins("dimensions.source", rack().name)),
    ask("contains on name, 50", () => filter("name", Operation.OP_CONTAINS, rack().name.slice(2))),
    ask("contains on a dimension, 50", () => filter("dimensions.source", Operation.OP_CONTAINS, rack().name.slice(2))),
    ask("and of five, or and not among them", () => ({ allOf: { clauses: fiveOf() } })),
    ask("or of five, 250", () => ({ anyOf: { clauses: Array.from({ length: 5 }, rackEquals) } })),
    ask("or of a dimension and a name, 51", () => {
      const place = below(count);
      const name = `${rackNames(place % (count / rackSize)).name}${String(place).padStart(6, "0")}`;
      return { anyOf: { clauses: [rackEquals(), equals("name", name)] } };
    }),
    ask("a dimension and not, 45", () => ({ allOf: { clauses: fiveOf().filter((_, i) => i === 0 || i === 2) } })),
    ask("range on a custom property, 80", () => {
      const from = costs();
      return { range: { path: "customProperties.costCenter", gte: value(from), lt: value(from + 4) } };
    }),
    ask("open range on a custom property, 60", () =>
      filter("customProperties.costCenter", Operation.OP_GREATER_OR_EQ, 1000 + count / 20 - 3),
    ),
    ask("equality on metadata, which no index has", () => equals("metadataFields.ticket", "none")),
    ask("withIds of 1,000", () => ({ withIds: { ids: anyIds() } })),
    ask("count, a hundredth of all", zone, false, () => ({ pageInput: { limit: 1 } })),
    ask(
      "a tenth of all, sorted by name",
      () => equals("dimensions.region", `region-${below(10)}`),
      false,
      () => ({
        sortby: [{ field: "name", order: Order.DESCENDING }],
        pageInput: { limit: 20 },
      }),
    ),
    ask("a hundredth of all, sorted by name", zone, false, () => ({
      sortby: [{ field: "name" }],
      pageInput: { limit: 2 },
    })),
    ask(
      "all, sorted by name",
      () => begins("name", ""),
      false,
      () => ({ sortby: [{ field: "name" }] }),
    ),
  ];
}
