import { useSignal } from "@preact/signals";
import { type Delivery, DeliveryService, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { askHealth, health } from "../data/health.ts";
import { may } from "../data/session.ts";
import { AskFirst } from "../ui/ask-first.tsx";
import deliveriesLook from "./deliveries.module.css";
import { DestinationState, isDown } from "./health.tsx";
import { type SentAgain, sendAllAgain } from "./send-again.ts";

const shownMax = 10;

/** The destinations of which something is wrong, or of which a listed delivery has failed, each with the way to send all that failed again. */
export function Troubles({ rows, changed }: { rows: readonly Delivery[]; changed(): void }) {
  const known = health.value?.destinations ?? [];
  const failed = new Set(
    rows.filter(({ status }) => status === DeliveryStatus.FAILED).map(({ destination }) => destination),
  );
  const names = [...new Set([...known.map(({ name }) => name), ...failed])];
  if (names.length === 0) return null;
  return (
    <section class={deliveriesLook.troubles} aria-label="Destinations in trouble">
      <ul>
        {names.slice(0, shownMax).map((name) => {
          const state = known.find((each) => each.name === name);
          const sendable = (state?.failedCount ?? 0n) > 0n || failed.has(name);
          return (
            <li key={name}>
              <p>
                <a href={linkTo(["rules", "destinations", name])}>{name}</a>{" "}
                {state && (
                  <span data-tone={isDown(state) ? "critical" : ""}>
                    <DestinationState destination={state} />
                  </span>
                )}
              </p>
              {sendable && may(DeliveryService.method.retryDeliveries) && (
                <SendAllAgain destination={name} changed={changed} />
              )}
            </li>
          );
        })}
      </ul>
      {names.length > shownMax && <p>and {names.length - shownMax} more destinations</p>}
    </section>
  );
}

/** Sends all that failed to a destination again, and says what came back. */
function SendAllAgain({ destination, changed }: { destination: string; changed(): void }) {
  const now = useSignal<SentAgain | undefined>(undefined);
  const ended = useSignal(true);
  const act = async () => {
    let begun = () => {};
    const beginning = new Promise<void>((resolve) => {
      begun = resolve;
    });
    ended.value = false;
    const all = sendAllAgain(destination, (state) => {
      now.value = state;
      begun();
    }).finally(() => {
      ended.value = true;
      changed();
      void askHealth();
    });
    // The question closes as soon as they are on their way.
    await Promise.race([beginning, all]);
    all.catch(() => undefined);
  };
  return (
    <>
      <AskFirst
        action="Send again"
        label={`Send all that failed to ${destination} again…`}
        question={`Send all that failed to "${destination}" again?`}
        act={act}
      >
        <p>What is not needed any more, since it is over or its rule is gone, stays as it is.</p>
      </AskFirst>
      <p role="status">{now.value && sentAgainText(now.value, ended.value)}</p>
    </>
  );
}

function sentAgainText({ retried, unneeded, followed, sent, failed, answer }: SentAgain, ended: boolean): string {
  const texts = [`${retried.toLocaleString("en")} sent again`];
  if (unneeded > 0) texts.push(`${unneeded.toLocaleString("en")} not needed any more`);
  if (retried > 0) {
    const of = followed < retried ? `of the first ${followed}: ` : "";
    texts.push(`${of}${sent} arrived`);
    if (failed > 0) texts.push(`${failed} failed: ${answer}`);
    const waiting = followed - sent - failed;
    if (waiting > 0) texts.push(`${waiting} ${ended ? "wait" : "under way…"}`);
  }
  return texts.join("; ");
}
