import { create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { type Clause, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  CustomPropertyService,
  EntitySelectionSchema,
  SetCustomPropertiesRequestSchema,
} from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import { clientOf } from "../../frame/calls.ts";
import { say } from "../../frame/notice.tsx";
import { ClauseField } from "../../parts/clause/clause-field.tsx";
import { searchClauses } from "../../parts/clause/search-clause.ts";
import { useForm } from "../../parts/form/form.ts";
import { FormEnd } from "../../parts/form/outcome.tsx";
import { One } from "../listing.tsx";
import { Preview, type Setting } from "./preview.tsx";
import { ValuesField } from "./values-field.tsx";

const service = clientOf(CustomPropertyService);

const selecting = (clause: Clause | undefined) =>
  create(EntitySelectionSchema, {
    selection: { case: "query", value: create(QuerySchema, { ...(clause && { clause }) }) },
  });

/** Sets properties once, on all entities that meet conditions now. */
export function SetOnce() {
  const stored = create(SetCustomPropertiesRequestSchema, { input: selecting(undefined), properties: {} });
  const form = useForm(SetCustomPropertiesRequestSchema, {
    key: "properties/once",
    stored,
    prefix: "",
    async send(request) {
      const { entityIds } = await service.setCustomProperties(request);
      say(
        `${entityIds.length.toLocaleString("en")} ${entityIds.length === 1 ? "entity was" : "entities were"} changed.`,
      );
      return request;
    },
  });
  const { input, properties = {} } = form.value;
  const clause = input?.selection.case === "query" ? input.selection.value.clause : undefined;
  const setting = useSignal<Setting>({ clause, properties });
  return (
    <One title="Set properties once" of="updaters">
      <form class="form" onSubmit={form.submit} aria-label="Properties">
        <ClauseField
          form={form}
          path="input.query.clause"
          label="On which entities"
          language={searchClauses}
          of="entity"
          clause={clause}
          set={(next) => {
            form.change({ input: selecting(next) });
            setting.value = { ...setting.peek(), clause: next };
          }}
        />
        <ValuesField
          form={form}
          path="properties"
          values={properties}
          set={(next) => {
            form.change({ properties: next });
            setting.value = { ...setting.peek(), properties: next };
          }}
        />
        <FormEnd form={form} schema={SetCustomPropertiesRequestSchema} send="Set them" />
      </form>
      <Preview setting={setting} />
    </One>
  );
}
