import { create } from "@bufbuild/protobuf";
import { type Query, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { TriggerSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { ClauseField } from "../../clause/clause-field.tsx";
import { searchClauses } from "../../clause/search-clause.ts";
import type { Form } from "../../form/form.ts";

interface EntityQueryProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly path: string;
  readonly query: Query | undefined;
  set(query: Query | undefined): void;
}

/** The entities whose data count. */
export function EntityQueryField({ form, path, query, set }: EntityQueryProps) {
  return (
    <ClauseField
      form={form}
      path={`${path}.clause`}
      label="Entities that count"
      help="Without a condition: all."
      language={searchClauses}
      of="entity"
      clause={query?.clause}
      set={(clause) => set(clause && create(QuerySchema, { clause }))}
    />
  );
}
