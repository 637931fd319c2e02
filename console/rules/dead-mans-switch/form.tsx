import { create } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import {
  type StaleDataSource,
  StaleDataSourceSchema,
  TriggerSchema,
  TriggerTypeSchema,
} from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { may } from "../../data/session.ts";
import { DurationField } from "../../form/duration-field.tsx";
import { TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { blank, type Form, useForm } from "../../form/form.ts";
import { MoreFields } from "../../form/more-fields.tsx";
import { FormEnd } from "../../form/outcome.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { durationText } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import { DestinationsField } from "../rules/destinations.tsx";
import rulesLook from "../rules.module.css";
import { EntityQueryField } from "../triggers/entity-query.tsx";
import { useEventNames } from "../triggers/names.ts";
import { SourceErrors } from "../triggers/source-errors.tsx";
import { SeenEvents } from "./seen.tsx";
import { blankSwitch, createSwitch, staleOf } from "./switch.ts";

type Put = (fields: Partial<StaleDataSource>) => void;

/** Notifies when an alert that fires all the time stays away: makes a trigger on missing data, and its rule. */
export function DeadMansSwitch() {
  const first = useMemo(blankSwitch, []);
  const noRule = useMemo(() => blank(RuleSchema), []);
  const form = useForm(TriggerSchema, {
    key: "dead-mans-switch",
    stored: first,
    prefix: "trigger",
    send: (trigger) => createSwitch(trigger, to.value.destinationNames),
    done: ({ name }) => {
      to.discard();
      goTo(linkTo(["rules", "rules", name]));
    },
  });
  // Keeps what is typed of the rule, over a reload, too; it is sent with the trigger.
  const to = useForm(RuleSchema, {
    key: "dead-mans-switch/rule",
    stored: noRule,
    prefix: "rule",
    send: async () => undefined,
  });
  const { destinationNames } = to.value;
  const source = staleOf(form.value);
  const allowed = may(TriggerService.method.createTrigger) && may(RuleService.method.createRule);
  const put: Put = (fields) => {
    const { $typeName: _, entityQuery, ...rest } = { ...source, ...fields };
    const value = create(StaleDataSourceSchema, { ...rest, ...(entityQuery && { entityQuery }) });
    form.change({ type: create(TriggerTypeSchema, { source: { case: "staleData", value } }) });
  };
  return (
    <>
      <ScreenHead title="Dead man's switch" above={["Rules", linkTo(["rules", "rules"])]} />
      <div class={`${ui.beside} ${ui.scroll}`}>
        <form class={formLook.form} onSubmit={form.submit} aria-label="Dead man's switch">
          <InWords source={source} destinationNames={destinationNames} />
          <fieldset class={formLook.plainSet} disabled={!allowed}>
            <WatchedFields form={form} source={source} put={put} />
            <DestinationsField
              form={form}
              path="rule.destinationNames"
              names={destinationNames}
              set={(names) => to.change({ destinationNames: names })}
            />
            <MoreFields said={false}>
              <TextField
                form={form}
                path="name"
                label="Name"
                help="Of the rule and of its trigger. It cannot be changed later."
                required
                value={form.value.name}
                set={(name) => form.change({ name })}
              />
              <EntityQueryField
                form={form}
                path="type.staleData.entityQuery"
                query={source.entityQuery}
                set={(entityQuery) => put({ entityQuery } as Partial<StaleDataSource>)}
              />
            </MoreFields>
          </fieldset>
          {allowed && <FormEnd form={form} schema={TriggerSchema} send="Create the rule" />}
        </form>
        <SeenEvents
          eventName={source.eventName}
          clause={source.entityQuery?.clause}
          watch={(clause) => put({ entityQuery: create(QuerySchema, { clause }) })}
        />
      </div>
    </>
  );
}

const nameList = new Intl.ListFormat("en-GB", { type: "conjunction" });

function InWords({ source, destinationNames }: { source: StaleDataSource; destinationNames: readonly string[] }) {
  const { eventName, durationSec } = source;
  const [which, who] = [eventName || "an alert", nameList.format(destinationNames) || "me"];
  const howLong = durationSec > 0n ? ` for ${durationText(Number(durationSec) * 1000)}` : "";
  return (
    <section class={ui.card} aria-label="The rule in words" aria-live="polite">
      <div class={rulesLook.inWords}>
        <p>
          Notify {who} when {which} stays away{howLong}, and when it comes again.
        </p>
        <p class={ui.hint}>
          When Prometheus fails, or the way from it to Belfry, no alerts arrive: that looks like a quiet night.
        </p>
      </div>
    </section>
  );
}

interface WatchedProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly source: StaleDataSource;
  readonly put: Put;
}

/** Asks for the event that must keep coming, and how long it may stay away. */
function WatchedFields({ form, source: { eventName, durationSec }, put }: WatchedProps) {
  const names = useEventNames();
  return (
    <>
      <TextField
        form={form}
        path="type.staleData.eventName"
        label="Alert that always fires"
        help="Or another event that comes again and again, such as that of a nightly back-up."
        suggestions={names}
        value={eventName}
        set={(text) => put({ eventName: text })}
      />
      <SourceErrors form={form} path="type.staleData" label="Alert that always fires" />
      <DurationField
        form={form}
        path="type.staleData.durationSec"
        label="Stays away for"
        help="Several times as long as it takes to come again, so that a restart notifies no one."
        required
        value={durationSec === 0n ? undefined : Number(durationSec)}
        set={(seconds) => put({ durationSec: BigInt(seconds ?? 0) })}
      />
    </>
  );
}
