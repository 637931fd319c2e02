import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import type { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import type { Form } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";

const triggers = clientOf(TriggerService);
const destinations = clientOf(DestinationService);

/** As many names are offered; of others the server says whether they exist. */
const offeredMax = 1000;

/** What sets the rule off, and who is notified: names of things that exist. */
export function MembersFields({ form }: { form: Form<typeof RuleSchema> }) {
  const { triggerNames, destinationNames } = form.value;
  const answer = useAnswer(async (signal) => {
    const [those, where] = await Promise.all([
      triggers.listTriggers({ pageSize: offeredMax }, { signal }),
      destinations.listDestinations({ pageSize: offeredMax }, { signal }),
    ]);
    return {
      triggers: those.triggers.map(({ name }) => name),
      destinations: where.destinations.map(({ name }) => name),
      whole: { triggers: those.nextPageToken === "", destinations: where.nextPageToken === "" },
    };
  });
  const { value, failure, again } = answer.value;
  return (
    <>
      <NamesField
        form={form}
        path="triggerNames"
        label="Triggers"
        help="Any of them sets it off. Of several that match, the first is named."
        values={triggerNames}
        suggestions={value?.triggers ?? []}
        known={value?.whole.triggers ?? false}
        ordered
        set={(names) => form.change({ triggerNames: names })}
      />
      {value?.triggers.length === 0 && <Missing section="triggers" what="trigger" />}
      <NamesField
        form={form}
        path="destinationNames"
        label="Destinations"
        help="Each of them is notified."
        values={destinationNames}
        suggestions={value?.destinations ?? []}
        known={value?.whole.destinations ?? false}
        set={(names) => form.change({ destinationNames: names })}
      />
      {value?.destinations.length === 0 && <Missing section="destinations" what="destination" />}
      <Problem failure={failure} again={again} />
    </>
  );
}

function Missing({ section, what }: { section: string; what: string }) {
  return (
    <p class={ui.hint}>
      There is no {what} yet. <a href={linkTo(["rules", section], { new: "1" })}>Make one</a>: what you have written
      here stays.
    </p>
  );
}
