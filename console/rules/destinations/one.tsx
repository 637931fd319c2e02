import { useSignal } from "@preact/signals";
import { type Destination, DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf, type Failure, failureOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { useOne } from "../../data/one.ts";
import { oneOrNull } from "../../data/one-or-null.ts";
import { may } from "../../data/session.ts";
import { forgetDraft } from "../../form/kept-draft.ts";
import { holdsSecret } from "../../form/secrets.ts";
import { AskFirst } from "../../ui/ask-first.tsx";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { nowMs } from "../../ui/time.tsx";
import { Trouble } from "../../ui/trouble.tsx";
import ui from "../../ui/ui.module.css";
import { RuleLinks } from "../rule-links.tsx";
import { DestinationForm, draftOf } from "./form.tsx";
import { DestinationState, stateMeans } from "./state.tsx";

const destinations = clientOf(DestinationService);
const { replaceDestination, deleteDestination } = DestinationService.method;

/** One destination: how it does, what uses it, and its form. */
export function OneDestination({ name }: { name: string }) {
  const answer = useOne(
    "destination",
    async (signal) => (await destinations.getDestination({ name }, { signal })).destination,
  );
  const { value, failure, again } = answer.value;
  return (
    <>
      <ScreenHead
        title={name}
        above={["Destinations", linkTo(["rules", "destinations"])]}
        tools={
          value && (
            <>
              <a href={linkTo(["deliveries"], { destination: name })}>Deliveries</a>
              {may(deleteDestination) && <Delete destination={value} look={again} />}
            </>
          )
        }
      />
      <Problem failure={failure} again={again} />
      {value === null && <p class={ui.pad}>There is no destination of this name. It may have been deleted.</p>}
      {value && (
        <div class={`${ui.scroll} ${ui.formPage}`}>
          <About destination={value} changed={again} />
          <DestinationForm stored={value} onSaved={again} />
        </div>
      )}
    </>
  );
}

/** How it does now: read again and again, apart from the form, which a person may be changing. */
function About({ destination: stored, changed }: { destination: Destination; changed(): void }) {
  const answer = useAnswer(async (signal) => {
    nowMs.value;
    const { name } = stored;
    return { of: stored, now: (await oneOrNull(destinations.getDestination({ name }, { signal })))?.destination };
  }, stored);
  const { of, now } = answer.value.value ?? {};
  const destination = (of === stored ? now : undefined) ?? stored;
  const { disabledReason, ruleNames, recentNotificationCount, trouble } = destination;
  return (
    <section class={ui.card} aria-labelledby="state">
      <h2 id="state">State</h2>
      <p>
        <DestinationState destination={destination} /> {stateMeans(destination)}
      </p>
      <Trouble text={trouble} />
      {disabledReason !== "" && <Disabled destination={destination} changed={changed} />}
      <dl class={ui.facts}>
        <dt>Rules</dt>
        <dd>
          <RuleLinks names={ruleNames} none="No rule names it: it gets nothing." />
        </dd>
        <dt>Sent in 24 h</dt>
        <dd>{recentNotificationCount.toLocaleString("en")}</dd>
      </dl>
    </section>
  );
}

function Disabled({ destination, changed }: { destination: Destination; changed(): void }) {
  const failure = useSignal<Failure | undefined>(undefined);
  const activate = async () => {
    try {
      await destinations.replaceDestination({ destination });
      say(`The destination "${destination.name}" is active again.`);
      failure.value = undefined;
    } catch (error) {
      failure.value = failureOf(error);
    }
    changed();
  };
  return (
    <>
      <p class={ui.answer}>{destination.disabledReason}</p>
      {may(replaceDestination) && (
        <div class={ui.buttons}>
          <button type="button" onClick={() => void activate()}>
            Make active again
          </button>
        </div>
      )}
      <Problem failure={failure.value} />
    </>
  );
}

function Delete({ destination, look }: { destination: Destination; look(): void }) {
  const { name, ruleNames } = destination;
  const secret = holdsSecret(DestinationSchema, destination);
  return (
    <AskFirst
      action="Delete"
      question={`Delete the destination "${name}"?`}
      look={look}
      act={async () => {
        await destinations.deleteDestination({ name });
        forgetDraft(draftOf(name));
        goTo(linkTo(["rules", "destinations"]));
        const undo = () => destinations.createDestination({ destination });
        say(`The destination "${name}" was deleted.`, secret ? undefined : undo);
      }}
    >
      <p>
        {ruleNames.length > 0 && "These rules name it. Take it out of them first: "}
        <RuleLinks names={ruleNames} none="No rule names it." />
      </p>
      {secret && <p>Its secrets go with it, so this cannot be taken back.</p>}
    </AskFirst>
  );
}
