import { clone } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { TriggerSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { blank } from "../../form/form.ts";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { TriggerForm } from "./form.tsx";

const triggers = clientOf(TriggerService);

/** What a new trigger begins with. */
export const blankTrigger = () => blank(TriggerSchema, { type: { source: { case: "event", value: { query: {} } } } });

/** A new trigger, or the copy of another one. */
export function NewTrigger({ copied }: { copied: string }) {
  const answer = useAnswer(async (signal) => {
    if (copied === "") return blankTrigger();
    const { trigger } = await triggers.getTrigger({ name: copied }, { signal });
    const { description, tags, type } = clone(TriggerSchema, trigger ?? blankTrigger());
    return blank(TriggerSchema, { name: `${copied} copy`, description, tags, ...(type && { type }) });
  });
  const { value, failure, again } = answer.value;
  const stored = useMemo(() => value, [value !== undefined]);
  return (
    <>
      <ScreenHead
        title={copied === "" ? "New trigger" : `Copy of ${copied}`}
        above={["Triggers", linkTo(["rules", "triggers"])]}
      />
      <Problem failure={failure} again={again} />
      {stored && (
        <TriggerForm
          draft={`trigger/new/${copied}`}
          stored={stored}
          isNew
          saved={({ name }) => goTo(linkTo(["rules", "triggers", name]))}
        />
      )}
    </>
  );
}
