import { create } from "@bufbuild/protobuf";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import {
  EventSourceSchema,
  MetricThresholdSourceSchema,
  StaleDataSourceSchema,
  type Trigger,
  TriggerSchema,
  type TriggerType,
  TriggerTypeSchema,
} from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { AboutFields } from "../../form/about-fields.tsx";
import { ChoiceField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";
import { maskOfAll } from "../../form/written.ts";
import ui from "../../ui/ui.module.css";
import { EventFields } from "./event-source.tsx";
import { MetricPreview } from "./metric-preview.tsx";
import { MetricFields } from "./metric-source.tsx";
import { EventPreview, usePreview } from "./preview.tsx";
import { StaleFields } from "./stale-source.tsx";
import { WatchedEntities } from "./watched-entities.tsx";
import { sourceWords } from "./words.ts";

const triggers = clientOf(TriggerService);

const updateMask = maskOfAll(TriggerSchema);

interface TriggerFormProps {
  /** What distinguishes its unsent text from that of others. */
  readonly draft: string;
  readonly stored: Trigger;
  readonly isNew?: boolean;
  readonly saved: (trigger: Trigger) => void;
  /** Called after a change was taken back. */
  readonly takenBack?: () => void;
  /** What stands before the fields. */
  readonly children?: ComponentChildren;
}

/** Writes a trigger, with what it would have matched beside it. */
export function TriggerForm({ draft, stored, isNew, saved, takenBack, children }: TriggerFormProps) {
  const form = useForm(TriggerSchema, {
    key: draft,
    stored,
    prefix: "trigger",
    send: (trigger) => (isNew ? createTrigger(trigger) : changeTrigger(trigger, takenBack)),
    done: saved,
  });
  const { name, type } = form.value;
  const preview = usePreview(type);
  const allowed = may(TriggerService.method[isNew ? "createTrigger" : "updateTrigger"]);
  return (
    <div class={`${ui.beside} ${ui.scroll}`}>
      <form class={formLook.form} onSubmit={form.submit} aria-label="Trigger">
        {children}
        <fieldset class={formLook.plainSet} disabled={!allowed}>
          {isNew && (
            <TextField
              form={form}
              path="name"
              label="Name"
              help="Rules name it by this. It cannot be changed later."
              required
              value={name}
              set={(text) => form.change({ name: text })}
            />
          )}
          <SourceChoice form={form} />
          <SourceFields form={form} errors={preview.clauseErrors} />
          <AboutFields form={form} about={form.value} />
        </fieldset>
        {allowed && <FormEnd form={form} schema={TriggerSchema} send={isNew ? "Create the trigger" : "Save"} />}
      </form>
      {type?.source.case === "event" && <EventPreview {...preview} />}
      {type?.source.case === "metricThreshold" && <MetricPreview source={type.source.value} />}
      {type?.source.case === "staleData" && <WatchedEntities source={type.source.value} />}
    </div>
  );
}

async function createTrigger(sent: Trigger): Promise<Trigger | undefined> {
  const { trigger } = await triggers.createTrigger({ trigger: sent });
  const { name } = sent;
  say(`The trigger "${name}" was created.`, async () => {
    await triggers.deleteTrigger({ name });
    if (address.peek().path[2] === name) goTo(linkTo(["rules", "triggers"]));
  });
  return trigger;
}

async function changeTrigger(sent: Trigger, takenBack?: () => void): Promise<Trigger | undefined> {
  const { name } = sent;
  const { trigger: before } = await triggers.getTrigger({ name });
  const { trigger: after } = await triggers.updateTrigger({ trigger: sent, updateMask });
  say(
    `The trigger "${name}" was changed.`,
    before &&
      (async () => {
        await triggers.updateTrigger({ trigger: { ...before, etag: after?.etag ?? "" }, updateMask });
        takenBack?.();
      }),
  );
  return after;
}

type Source = NonNullable<TriggerType["source"]["case"]>;

const blankSources = {
  event: () => ({ case: "event", value: create(EventSourceSchema, { query: {} }) }) as const,
  metricThreshold: () => ({ case: "metricThreshold", value: create(MetricThresholdSourceSchema) }) as const,
  staleData: () => ({ case: "staleData", value: create(StaleDataSourceSchema, { durationSec: 600n }) }) as const,
};

/** What it looks at. What was written of another source comes back with it. */
function SourceChoice({ form }: { form: Form<typeof TriggerSchema> }) {
  const former = useRef<Partial<Record<Source, TriggerType["source"]>>>({});
  const source = form.value.type?.source;
  return (
    <ChoiceField
      form={form}
      path="type.source"
      label="Looks at"
      value={source?.case ?? "event"}
      choices={Object.entries(sourceWords) as [Source, string][]}
      set={(next) => {
        if (source?.case) former.current[source.case] = source;
        const chosen = former.current[next] ?? blankSources[next]();
        form.change({ type: create(TriggerTypeSchema, { source: chosen }) });
      }}
    />
  );
}

interface SourceFieldsProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly errors: Parameters<typeof EventFields>[0]["errors"];
}

function SourceFields({ form, errors }: SourceFieldsProps) {
  const source = form.value.type?.source;
  const set = (next: TriggerType["source"]) => form.change({ type: create(TriggerTypeSchema, { source: next }) });
  switch (source?.case) {
    case "event":
      return (
        <EventFields form={form} source={source.value} errors={errors} set={(value) => set({ ...source, value })} />
      );
    case "metricThreshold":
      return <MetricFields form={form} source={source.value} set={(value) => set({ ...source, value })} />;
    case "staleData":
      return <StaleFields form={form} source={source.value} set={(value) => set({ ...source, value })} />;
    default:
      return null;
  }
}
