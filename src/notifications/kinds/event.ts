import { create } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import type { EventDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { EventItem } from "../../events/ingest.ts";
import { validateItem } from "../../rpc/validate.ts";
import { chainEventsMax } from "../deciding/chain-counts.ts";
import { chainRulesMax, standInEntity } from "../subject/notification.ts";
import { plainText } from "../templates/markup.ts";
import { cutText } from "../templates/template.ts";
import { withoutBreaks } from "../templates/titles.ts";
import { type AttemptOutcome, notSent, sent, type ThreadState } from "./attempt-outcome.ts";
import type { DestinationKind, Rendered } from "./kind.ts";
import { beyondChain } from "./send-environment.ts";

const labelCharsMax = 255;
const summaryCharsMax = 128;
const bodyBytesMax = 65_536;

/** As many characters as the rule counts: code points. */
const cut = (text: string, max: number) => [...text.slice(0, 2 * max)].slice(0, max).join("");

function cutBytes(text: string, bytesMax: number) {
  const bytes = Buffer.from(text);
  return bytes.length <= bytesMax
    ? text
    : bytes
        .subarray(0, bytesMax)
        .toString("utf8")
        .replace(/\uFFFD+$/, "");
}

/** The same for every try of a notification, so that a repeated try changes nothing. */
function itemOf({ destination, notification, texts }: Rendered<EventDestination>, state: ThreadState): EventItem {
  const text = (name: string) => (texts[name] ?? "").replaceAll("\0", "").toWellFormed();
  const { timeMs, clear, summary, group, rule, trigger } = notification;
  // What stands for several is on none of their entities.
  const { dimensions } = group === undefined ? notification.entity : standInEntity(rule.name);
  return {
    // What opened under one name is closed under the same.
    name: state.name ?? cut(withoutBreaks(text("nameTemplate")), labelCharsMax),
    type: cut(withoutBreaks(text("typeTemplate")), labelCharsMax),
    summary: cut(text("summaryTemplate"), summaryCharsMax),
    body: cutBytes(text("bodyTemplate"), bodyBytesMax),
    dimensions: { ...dimensions },
    timeMs: BigInt(timeMs),
    severity: destination.severity,
    status: clear ? Status.CLOSED : Status.OPEN,
    acknowledged: undefined,
    metadata: {
      rule: rule.name,
      ...(trigger.name !== "" && { trigger: trigger.name }),
      cause: notification.subjectId,
    },
    // Several summaries, or groups, may be open on one entity.
    ...((summary ?? group) && { dedupKey: notification.subjectId }),
  };
}

/** An event in this service, on the entity of the one that caused it, or of a group on its rule's; when that is over, so is this. */
export const event: DestinationKind<EventDestination> = {
  templates: ({ nameTemplate, typeTemplate, summaryTemplate, bodyTemplate }) => ({
    nameTemplate: { text: nameTemplate, markup: plainText },
    typeTemplate: { text: typeTemplate, markup: plainText },
    summaryTemplate: { text: summaryTemplate, markup: plainText },
    bodyTemplate: { text: bodyTemplate, markup: plainText },
  }),

  check: ({ severity }) =>
    severity === Severity.DEFAULT ? [{ path: "severity", rule: "must be another one than SEVERITY_DEFAULT" }] : [],

  compose(rendered) {
    const { name, summary, body } = itemOf(rendered, {});
    return { subject: cutText(name, labelCharsMax), body: [summary, body].filter((text) => text !== "").join("\n\n") };
  },

  async send(sending, { createEvent }) {
    const { notification, state } = sending;
    if (notification.chain.length >= chainRulesMax) {
      return notSent("event", "chained", `${chainRulesMax} rules have caused each other: no further event`, state);
    }
    const item = itemOf(sending, state);
    const { name, type, summary, body, dimensions } = item;
    const message = create(EventSchema, { name, type, summary, body, dimensions, timestamp: item.timeMs });
    const broken = validateItem(EventSchema, message, "event");
    if (broken.length > 0) {
      const said = broken.map(({ path, rule }) => `${path}: ${rule}`).join("; ");
      return notSent("event", "bad_request", said, state);
    }
    const root = notification.root ?? notification.id;
    const chain = [...notification.chain, notification.rule.name];
    const refusal = await createEvent(notification.tenant.id, item, chain, root);
    if (refusal === beyondChain) {
      const said = `${chainEventsMax} events were made of one cause: no further event`;
      return { ...notSent("event", "chained", said, state), beyond: root } as AttemptOutcome;
    }
    if (refusal !== undefined) return notSent("event", "bad_request", refusal, state);
    return sent("created", { name: item.name });
  },
};
