import { create } from "@bufbuild/protobuf";
import {
  type MaintenanceWindow,
  MaintenanceWindowSchema,
  RunMode,
  WindowNotificationSchema,
  WindowQuerySchema,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { ClauseField } from "../clause/clause-field.tsx";
import { searchClauses } from "../clause/search-clause.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { AboutFields } from "../form/about-fields.tsx";
import { CheckField, ChoiceField, NumberField, TextField } from "../form/fields.tsx";
import formLook from "../form/form.module.css";
import { useForm } from "../form/form.ts";
import { MoreFields } from "../form/more-fields.tsx";
import { NamesField } from "../form/names-field.tsx";
import { FormEnd } from "../form/outcome.tsx";
import { sameWritten } from "../form/written.ts";
import ui from "../ui/ui.module.css";
import { FormPreview } from "./form-preview.tsx";
import { draftOf, maintenanceState } from "./one.ts";
import { ScheduleFields, SkipField, type WindowFormState } from "./schedule-fields.tsx";

const rules = clientOf(RuleService);

interface WindowFormProps {
  readonly stored: MaintenanceWindow;
  /** Empty: it is not stored yet. */
  readonly id: string;
  /** Entity that a new window is for. */
  readonly entityId?: string;
  readonly label: string;
  send(value: MaintenanceWindow): Promise<MaintenanceWindow>;
  done(stored: MaintenanceWindow): void;
}

/** All that a person may set of a window, with what the server would make of it beside. */
export function WindowForm({ stored, id, entityId, label, send, done }: WindowFormProps) {
  const form = useForm(MaintenanceWindowSchema, {
    key: draftOf(id, entityId),
    stored,
    prefix: "specification",
    send,
    done,
  });
  const { value, change } = form;
  const fixed = id !== "";
  return (
    <div class={ui.beside}>
      <form class={formLook.form} onSubmit={form.submit} aria-label="Maintenance window">
        <TextField
          form={form}
          path="name"
          label="Name"
          value={value.name}
          required
          readOnly={fixed}
          {...(fixed && { help: "The name cannot be changed later." })}
          set={(name) => change({ name })}
        />
        <ClauseField
          form={form}
          clause={value.target.case === "query" ? value.target.value.clause : undefined}
          path="query.clause"
          label="Entities with"
          help="They are found when a run begins."
          language={searchClauses}
          of="entity"
          set={(next) =>
            change({ target: { case: "query", value: create(WindowQuerySchema, next ? { clause: next } : {}) } })
          }
        />
        <ScheduleFields form={form} isNew={!fixed} />
        <MoreFields said={hasMore(value)}>
          <About form={form} />
          <Running form={form} />
          <Effect form={form} />
          <Notification form={form} />
        </MoreFields>
        <FormEnd form={form} schema={MaintenanceWindowSchema} send={label} />
      </form>
      <FormPreview form={form} id={id} />
    </div>
  );
}

/** Tells whether a window differs from a new one in more than its name, its entities and when it runs. */
function hasMore(window: MaintenanceWindow): boolean {
  const { name, target, schedule } = window;
  const plain = create(MaintenanceWindowSchema, {
    name,
    maintenanceState,
    ...(schedule && { schedule: { ...schedule, skipNext: 0n } }),
  });
  return !sameWritten(MaintenanceWindowSchema, window, Object.assign(plain, { target }));
}

function About({ form }: { form: WindowFormState }) {
  const { value, change } = form;
  return (
    <fieldset>
      <legend>About</legend>
      <AboutFields form={form} about={value} />
      <TextField
        form={form}
        path="owner"
        label="Owner"
        help="Who is responsible for it, in any words."
        value={value.owner}
        set={(owner) => change({ owner })}
      />
    </fieldset>
  );
}

function Running({ form }: { form: WindowFormState }) {
  const { value, change } = form;
  return (
    <fieldset>
      <legend>Status and start</legend>
      <ChoiceField
        form={form}
        path="status"
        label="Status"
        value={value.status === WindowStatus.DISABLED ? "disabled" : "enabled"}
        choices={[
          ["enabled", "Enabled"],
          ["disabled", "Disabled: it does not run"],
        ]}
        set={(word) => change({ status: word === "disabled" ? WindowStatus.DISABLED : WindowStatus.ENABLED })}
      />
      <ChoiceField
        form={form}
        path="runMode"
        label="It starts"
        value={value.runMode === RunMode.MANUAL ? "manual" : "auto"}
        choices={[
          ["auto", "By its schedule, and when a person starts it"],
          ["manual", "Only when a person starts it"],
        ]}
        set={(word) => change({ runMode: word === "manual" ? RunMode.MANUAL : RunMode.AUTO })}
      />
      <SkipField form={form} />
    </fieldset>
  );
}

function Effect({ form }: { form: WindowFormState }) {
  const { value, change } = form;
  return (
    <fieldset>
      <legend>Effect on entities</legend>
      <CheckField
        form={form}
        path="doNotPropagateToChildren"
        label="Children stay as they are"
        help="Else those that have such an entity as parent follow, and theirs in turn."
        value={value.doNotPropagateToChildren}
        set={(doNotPropagateToChildren) => change({ doNotPropagateToChildren })}
      />
      <CheckField
        form={form}
        path="force"
        label="Decommissioned entities take part"
        value={value.force}
        set={(force) => change({ force })}
      />
      <NumberField
        form={form}
        path="maintenanceState"
        label="Production state during a run"
        help="300 maintenance, 400 test, 500 pre-production, 1000 production; others are allowed."
        value={value.maintenanceState}
        required
        whole
        set={(maintenanceState) => change({ maintenanceState })}
      />
      <CheckField
        form={form}
        path="overrideExitState"
        label="Another state than before after a run"
        value={value.overrideExitState}
        set={(overrideExitState) => change({ overrideExitState })}
      />
      {value.overrideExitState && (
        <NumberField
          form={form}
          path="exitState"
          label="Production state after a run"
          value={value.exitState === 0 ? undefined : value.exitState}
          required
          whole
          set={(state) => change({ exitState: state ?? 0 })}
        />
      )}
    </fieldset>
  );
}

function Notification({ form }: { form: WindowFormState }) {
  const { value, change } = form;
  const answer = useAnswer((signal) => rules.listRules({ pageSize: 1000 }, { signal }));
  const message = value.notification?.message ?? "";
  const names = value.notification?.rules ?? [];
  const set = (next: { message?: string; rules?: string[] }) => {
    const both = { message, rules: names, ...next };
    const none = both.message === "" && both.rules.length === 0;
    change({ notification: none ? undefined : create(WindowNotificationSchema, both) });
  };
  return (
    <fieldset>
      <legend>Message at the start and the end of a run</legend>
      <TextField
        form={form}
        path="notification.message"
        label="Message"
        rows={2}
        help="A template, as in rules. Left out: none is sent."
        value={message}
        set={(text) => set({ message: text })}
      />
      <NamesField
        form={form}
        path="notification.rules"
        label="Rules to whose destinations it goes"
        known={answer.value.value?.nextPageToken === ""}
        values={names}
        suggestions={answer.value.value?.rules.map(({ name }) => name) ?? []}
        set={(list) => set({ rules: list })}
      />
    </fieldset>
  );
}
