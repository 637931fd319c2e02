import type { Trigger } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { useOne } from "../../data/one.ts";
import { may } from "../../data/session.ts";
import { forgetDraft } from "../../form/kept-draft.ts";
import { AskFirst } from "../../ui/ask-first.tsx";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { Trouble } from "../../ui/trouble.tsx";
import ui from "../../ui/ui.module.css";
import { RuleLinks } from "../rule-links.tsx";
import { TriggerForm } from "./form.tsx";

const triggers = clientOf(TriggerService);

const draftOf = (name: string) => `trigger/${name}`;

/** One trigger: what uses it, and the form that changes it. */
export function OneTrigger({ name }: { name: string }) {
  const answer = useOne("trigger", async (signal) => (await triggers.getTrigger({ name }, { signal })).trigger);
  const { value, failure, again } = answer.value;
  return (
    <>
      <ScreenHead
        title={name}
        above={["Triggers", linkTo(["rules", "triggers"])]}
        tools={
          value && (
            <>
              {may(TriggerService.method.createTrigger) && (
                <a class={ui.button} href={linkTo(["rules", "triggers"], { new: "1", copy: name })}>
                  Duplicate
                </a>
              )}
              {may(TriggerService.method.deleteTrigger) && <Delete trigger={value} again={again} />}
            </>
          )
        }
      />
      <Problem failure={failure} again={again} />
      {value === null && <p class={ui.pad}>There is no trigger of this name. It may have been deleted.</p>}
      {value && (
        <TriggerForm key={name} draft={draftOf(name)} stored={value} saved={again} takenBack={again}>
          <Use trigger={value} />
        </TriggerForm>
      )}
    </>
  );
}

/** What is wrong with it, which rules use it, and how much was sent because of it. */
function Use({ trigger: { name, ruleNames, recentNotificationCount, trouble } }: { trigger: Trigger }) {
  return (
    <>
      <Trouble text={trouble && `It may match nothing: ${trouble}`} />
      <p>
        {ruleNames.length === 0 ? "No rule uses it: no one is notified." : <UsedBy names={ruleNames} />}{" "}
        <a href={linkTo(["deliveries"], { trigger: name })}>
          {recentNotificationCount.toLocaleString("en")}{" "}
          {recentNotificationCount === 1n ? "notification was" : "notifications were"} sent
        </a>{" "}
        in the last 24 hours.
      </p>
    </>
  );
}

function UsedBy({ names }: { names: readonly string[] }) {
  return (
    <>
      Used by {names.length === 1 ? "the rule" : "the rules"} <RuleLinks names={names} none="" />.
    </>
  );
}

function Delete({ trigger, again }: { trigger: Trigger; again(): void }) {
  const { name, ruleNames } = trigger;
  const act = async () => {
    await triggers.deleteTrigger({ name });
    forgetDraft(draftOf(name));
    goTo(linkTo(["rules", "triggers"]));
    say(`The trigger "${name}" was deleted.`, async () => {
      await triggers.createTrigger({ trigger });
      goTo(linkTo(["rules", "triggers", name]));
    });
  };
  return (
    <AskFirst action="Delete" question={`Delete the trigger "${name}"?`} act={act} look={again}>
      {ruleNames.length === 0 ? (
        <p>No rule uses it.</p>
      ) : (
        <p>
          <UsedBy names={ruleNames} /> Take it out of {ruleNames.length === 1 ? "that rule" : "those rules"} first: a
          trigger that a rule uses cannot be deleted.
        </p>
      )}
    </AskFirst>
  );
}
