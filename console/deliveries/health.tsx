import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { DestinationHealth } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { BreakerState } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { linkTo } from "../data/address.ts";
import { destinationsDown, health } from "../data/health.ts";
import { narrow } from "../ui/narrow.ts";
import { nowMs, Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import deliveriesLook from "./deliveries.module.css";

const namedMax = 3;
/** Longest ordinary wait: a delivery that waits longer is late. */
const longMs = 60_000;

/** Tells whether a destination takes no notifications. */
export const isDown = ({ breakerState, disabledReason }: DestinationHealth) =>
  breakerState !== BreakerState.CLOSED || disabledReason !== "";

interface DownReasonProps {
  readonly destination: DestinationHealth;
  /** Shows the time left until the next attempt, not its moment. */
  readonly short?: boolean;
}

/** Shows why a destination takes nothing, and until when. */
export function DownReason({ destination, short = false }: DownReasonProps) {
  const { disabledReason, breakerState, pausedUntil } = destination;
  if (disabledReason !== "") return <>disabled: {disabledReason}</>;
  if (breakerState === BreakerState.HALF_OPEN) return <>being retried</>;
  return (
    <>
      paused
      {pausedUntil && timestampMs(pausedUntil) > nowMs.value && (
        <>
          {short ? ", next attempt " : " until "}
          <Time at={pausedUntil} due short={short} />
        </>
      )}
    </>
  );
}

/** Says how a destination stands: why it takes nothing, and what waits. */
export function DestinationState({ destination }: { destination: DestinationHealth }) {
  const { waitingCount, waitingSince, failedCount } = destination;
  return (
    <>
      {isDown(destination) && <DownReason destination={destination} short />}
      {waitingCount > 0n && (
        <>
          {isDown(destination) && "; "}
          {waitingCount.toLocaleString("en")} waiting
          {waitingSince && (
            <>
              , the oldest for <Time at={waitingSince} age />
            </>
          )}
        </>
      )}
      {failedCount > 0n && (
        <>
          {(isDown(destination) || waitingCount > 0n) && "; "}
          {failedCount.toLocaleString("en")} failed in the last hour
        </>
      )}
    </>
  );
}

/** Says on the first screen that notifying itself is in trouble; nothing while all is well. */
export function HealthStrip() {
  const now = health.value;
  if (now === undefined) return null;
  const { destinationCount, waitingCount, waitingSince, failedCount } = now;
  const down = destinationsDown.value;
  const late = waitingSince !== undefined && timestampMs(waitingSince) < nowMs.value - longMs;
  if (down === 0n && failedCount === 0n && !late) return null;
  // On a phone the list comes first.
  const named = narrow.value ? [] : now.destinations.filter(isDown);
  return (
    <section class={deliveriesLook.strip} aria-label="Health of notifying">
      <span aria-hidden="true">▲</span>
      {down > 0n && (
        // Alone: times that tick would have the whole strip read again and again.
        <strong role="status">
          {down.toLocaleString("en")} of {destinationCount.toLocaleString("en")}{" "}
          {destinationCount === 1n ? "destination takes" : "destinations take"} no notifications.
        </strong>
      )}
      {waitingCount > 0n && (
        <span>
          {waitingCount.toLocaleString("en")} waiting
          {waitingSince && (
            <>
              , the oldest for <Time at={waitingSince} age />
            </>
          )}
          .
        </span>
      )}
      {failedCount > 0n && <span>{failedCount.toLocaleString("en")} failed in the last hour.</span>}
      {named.slice(0, namedMax).map((destination) => (
        <span key={destination.name}>
          <a href={linkTo(["rules", "destinations", destination.name])}>{destination.name}</a>{" "}
          <DownReason destination={destination} short />
        </span>
      ))}
      {named.length > namedMax && <span>and {named.length - namedMax} more</span>}
      <a class={ui.push} href={linkTo(["deliveries"], { status: failedCount > 0n ? "3" : "1" })}>
        {failedCount > 0n ? "What failed" : "What waits"}
      </a>
    </section>
  );
}
