import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { type Clause, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import {
  CustomPropertyService,
  EntitySelectionSchema,
  SetCustomPropertiesRequestSchema,
} from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import { ClauseField } from "../../clause/clause-field.tsx";
import { searchClauses } from "../../clause/search-clause.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import formLook from "../../form/form.module.css";
import { useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { One } from "../../ui/one.tsx";
import ui from "../../ui/ui.module.css";
import { Preview } from "./preview.tsx";
import { ValuesField } from "./values-field.tsx";

const service = clientOf(CustomPropertyService);
const entities = clientOf(EntityService);

const selecting = (clause: Clause | undefined) =>
  create(EntitySelectionSchema, {
    selection: { case: "query", value: create(QuerySchema, { ...(clause && { clause }) }) },
  });

const entitiesText = (count: number) => `${count.toLocaleString("en")} ${count === 1 ? "entity" : "entities"}`;

/** Counts the entities that the conditions match now. */
async function countOf(clause: Clause | undefined): Promise<number> {
  const query = create(QuerySchema, { ...(clause && { clause }) });
  const { pageInfo } = await entities.searchEntities({ searchInput: { query, pageInput: { limit: 1 } } });
  return Number(pageInfo?.totalCount ?? 0n);
}

/** Sets properties once, on all entities that meet conditions now. */
export function SetOnce() {
  const stored = create(SetCustomPropertiesRequestSchema, { input: selecting(undefined), properties: {} });
  const form = useForm(SetCustomPropertiesRequestSchema, {
    key: "properties/once",
    stored,
    prefix: "",
    async send(request) {
      const { entityIds } = await service.setCustomProperties(request);
      say(`${entitiesText(entityIds.length)} ${entityIds.length === 1 ? "was" : "were"} changed.`);
      return request;
    },
  });
  const { input, properties = {} } = form.value;
  const clause = input?.selection.case === "query" ? input.selection.value.clause : undefined;
  const asking = useSignal<number | undefined>(undefined);
  const close = () => {
    asking.value = undefined;
  };
  const ask = async (event: Event) => {
    event.preventDefault();
    try {
      asking.value = await countOf(clause);
    } catch (error) {
      // Conditions that match nothing because they are wrong are refused when they are sent too, and that error names their field.
      if (ConnectError.from(error).code === Code.InvalidArgument) await form.submit();
      else form.refused(error);
    }
  };
  return (
    <One title="Set properties once" of="updaters">
      <form class={formLook.form} onSubmit={(event) => void ask(event)} aria-label="Properties">
        <ClauseField
          form={form}
          path="input.query.clause"
          label="On which entities"
          language={searchClauses}
          of="entity"
          clause={clause}
          set={(next) => form.change({ input: selecting(next) })}
        />
        <ValuesField
          form={form}
          path="properties"
          values={properties}
          set={(next) => form.change({ properties: next })}
        />
        <FormEnd form={form} schema={SetCustomPropertiesRequestSchema} send="Set them" />
      </form>
      <Preview clause={clause} properties={properties} />
      {asking.value !== undefined && (
        <Dialog title={`Set properties on ${entitiesText(asking.value)}?`} close={close}>
          <p>
            {Object.keys(properties).join(", ")}: what an entity has there now is replaced. It cannot be taken back.
          </p>
          <div class={ui.buttons}>
            <button
              type="button"
              class={ui.primary}
              onClick={() => {
                close();
                void form.submit();
              }}
            >
              Set them
            </button>
            <button type="button" onClick={close}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
    </One>
  );
}
