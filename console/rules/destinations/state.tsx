import { BreakerState, type Destination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import ui from "../../ui/ui.module.css";

interface Words {
  readonly word: string;
  readonly sign: string;
  readonly tone: string;
  /** What it means for what is sent. */
  readonly means: string;
}

const states: Readonly<Record<BreakerState, Words>> = {
  [BreakerState.CLOSED]: {
    word: "Active",
    sign: "✓",
    tone: "good",
    means: "What rules send to it goes out.",
  },
  [BreakerState.OPEN]: {
    word: "Paused",
    sign: "▲",
    tone: "critical",
    means:
      "It failed five times in a row, so it is left alone: for 30 seconds, and up to ten minutes while it goes on failing. What waits is sent later.",
  },
  [BreakerState.HALF_OPEN]: {
    word: "On trial",
    sign: "○",
    tone: "info",
    means: "It failed again and again. The next notification is tried alone: when it is taken, all others follow.",
  },
};

const disabled: Words = {
  word: "Disabled",
  sign: "■",
  tone: "critical",
  means: "The service has disabled it, and sends nothing to it. What rules decide meanwhile fails.",
};

const unfit: Words = {
  word: "Cannot work",
  sign: "▲",
  tone: "critical",
  means: "Nothing that is sent to it can arrive as it is.",
};

function ofDestination({ disabledReason, breakerState, trouble }: Destination): Words {
  if (disabledReason !== "") return disabled;
  return trouble === "" ? (states[breakerState] ?? states[BreakerState.CLOSED]) : unfit;
}

export function DestinationState({ destination }: { destination: Destination }) {
  const { word, sign, tone } = ofDestination(destination);
  return (
    <span class={ui.state} data-tone={tone}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

export const stateMeans = (destination: Destination) => ofDestination(destination).means;

/** How a list marks it. */
export const stateTone = (destination: Destination) => (ofDestination(destination).tone === "critical" ? "error" : "");
