import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type CustomPropertyUpdater,
  CustomPropertyUpdaterSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";
import {
  CustomPropertyUpdaterService,
  UpdaterAction,
  type UpdaterResult,
} from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { ClauseField } from "../../clause/clause-field.tsx";
import { searchClauses } from "../../clause/search-clause.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf, type Failure, failureOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { AboutFields } from "../../form/about-fields.tsx";
import { CheckField, NumberField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";
import { AskFirst } from "../../ui/ask-first.tsx";
import { One } from "../../ui/one.tsx";
import { Problem } from "../../ui/problem.tsx";
import { withoutPrefix, withPrefix } from "./entity-prefix.ts";
import { Preview } from "./preview.tsx";
import { ValuesField } from "./values-field.tsx";

const updaters = clientOf(CustomPropertyUpdaterService);
const { method } = CustomPropertyUpdaterService;
const list = linkTo(["settings", "properties"]);

/** Returns the id in a result; throws an item's error as a request's, which forms know how to show. */
function idOf([result]: readonly UpdaterResult[]): string {
  if (result === undefined || result.error !== "") throw new ConnectError(result?.error ?? "", Code.InvalidArgument);
  return result.id;
}

export function NewUpdater() {
  return (
    <One title="New updater" of="updaters">
      <UpdaterForm stored={create(CustomPropertyUpdaterSchema, { enabled: true })} again={() => undefined} />
    </One>
  );
}

interface OneProps {
  readonly updater: CustomPropertyUpdater;
  /** Reads the list again. */
  again(): void;
}

export function OneUpdater({ updater, again }: OneProps) {
  const { id, name, enabled } = updater;
  const failure = useSignal<Failure | undefined>(undefined);
  const turn = async (on: boolean) => {
    const action = on ? UpdaterAction.ENABLE : UpdaterAction.DISABLE;
    idOf((await updaters.switchCustomPropertyUpdaters({ ids: [id], action })).results);
    again();
  };
  const tools = may(method.switchCustomPropertyUpdaters) && (
    <>
      <button
        type="button"
        onClick={async () => {
          failure.value = undefined;
          try {
            await turn(!enabled);
            say(`"${name}" ${enabled ? "does not run any more" : "runs"}.`, () => turn(enabled));
          } catch (error) {
            failure.value = failureOf(error);
          }
        }}
      >
        {enabled ? "Disable" : "Enable"}
      </button>
      <AskFirst
        action="Delete"
        question={`Delete the updater "${name}"?`}
        act={async () => {
          idOf((await updaters.deleteCustomPropertyUpdaters({ ids: [id] })).results);
          say(`The updater "${name}" is deleted.`, async () => {
            idOf((await updaters.createCustomPropertyUpdaters({ updaters: [updater] })).results);
            again();
          });
          again();
          goTo(list);
        }}
      >
        <p>The values that it has set stay.</p>
      </AskFirst>
    </>
  );
  return (
    <One title={name} of="updaters" tools={tools}>
      <Problem failure={failure.value} />
      <UpdaterForm stored={updater} again={again} />
    </One>
  );
}

function UpdaterForm({ stored, again }: { stored: CustomPropertyUpdater; again(): void }) {
  const isNew = stored.id === "";
  const form: Form<typeof CustomPropertyUpdaterSchema> = useForm(CustomPropertyUpdaterSchema, {
    key: `updater/${stored.id}`,
    stored,
    prefix: "updaters[0]",
    async send(updater) {
      const sent = { updaters: [updater] };
      const { results } = isNew
        ? await updaters.createCustomPropertyUpdaters(sent)
        : await updaters.replaceCustomPropertyUpdaters(sent);
      return create(CustomPropertyUpdaterSchema, { ...updater, id: idOf(results) });
    },
    done({ id, name }) {
      const before = form.stored;
      say(isNew ? `The updater "${name}" is made.` : `The updater "${name}" is changed.`, async () => {
        if (isNew) idOf((await updaters.deleteCustomPropertyUpdaters({ ids: [id] })).results);
        else idOf((await updaters.replaceCustomPropertyUpdaters({ updaters: [before] })).results);
        again();
      });
      again();
      goTo(linkTo(["settings", "properties", id]));
    },
  });
  const { name, entityInput, properties = {}, enabled, sequence } = form.value;
  const clause = withoutPrefix(entityInput?.clause);
  const allowed = may(method.createCustomPropertyUpdaters);
  return (
    <>
      <form class={formLook.form} onSubmit={form.submit} aria-label="Updater">
        <TextField
          form={form}
          path="name"
          label="Name"
          required
          value={name}
          set={(next) => form.change({ name: next })}
        />
        <ClauseField
          form={form}
          path="entity_input.clause"
          label="On which entities"
          language={searchClauses}
          of="entity"
          clause={clause}
          set={(next) =>
            form.change({ entityInput: create(QuerySchema, { ...(next && { clause: withPrefix(next) }) }) })
          }
        />
        <ValuesField
          form={form}
          path="properties"
          values={properties}
          set={(next) => form.change({ properties: next })}
        />
        <CheckField
          form={form}
          path="enabled"
          label="It runs"
          help="On all entities that match when it is saved, and on those that a model makes or changes from then on."
          value={enabled}
          set={(next) => form.change({ enabled: next })}
        />
        <NumberField
          form={form}
          path="sequence"
          label="Place among the updaters of one entity"
          help="A later one wins."
          value={sequence}
          set={(next) => form.change({ sequence: next ?? 0 })}
        />
        <AboutFields form={form} about={form.value} />
        {allowed && (
          <FormEnd form={form} schema={CustomPropertyUpdaterSchema} send={isNew ? "Make the updater" : "Save"} />
        )}
      </form>
      <Preview clause={clause} properties={properties} />
    </>
  );
}
