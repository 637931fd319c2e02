import { useSignal } from "@preact/signals";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { type PreviewMessageResponse, RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { address } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf, type Failure } from "../../data/calls.ts";
import { useSettled } from "../../data/settled.ts";
import { findSubjects, type Subjects } from "./subjects.ts";

const rules = clientOf(RuleService);

/** Destinations that are shown what they would get. */
export const renderedMax = 10;

/** What a message says, asked as it is typed. */
export interface Preview {
  readonly subjects: Subjects | undefined;
  /** The occurrence that it is shown for; empty: a made-up event. */
  readonly occurrenceId: string;
  /** Words of the name of an event that is looked for. */
  readonly words: string;
  look(words: string): void;
  /** The latest answer; it stays in sight while the next one is awaited, and while the message is no template. */
  readonly value: PreviewMessageResponse | undefined;
  /** Whether that answer is about the occurrence that is chosen now. */
  readonly isOfThis: boolean;
  readonly loading: boolean;
  /** What is wrong with the message as a template. */
  readonly mistake: string | undefined;
  readonly failure: Failure | undefined;
  again(): void;
}

export function usePreview({ name, message, matchers, triggerNames, destinationNames, grouping }: Rule): Preview {
  const words = useSignal("");
  const searched = useSettled(JSON.stringify([{ matchers, triggerNames }, words.value]));
  const subjects = useAnswer((signal) => {
    const [conditions, text] = JSON.parse(searched);
    return findSubjects(conditions, text, signal);
  }, searched).value;
  const chosen = address.value.parameters.get("event");
  const occurrenceId = chosen ?? subjects.value?.found[0]?.id ?? "";
  const rendered = destinationNames.slice(0, renderedMax);
  const request = JSON.stringify({
    message,
    occurrenceId,
    ruleName: name,
    triggerNames,
    destinationNames: rendered,
    grouped: grouping !== undefined,
  });
  const settled = useSettled(request);
  // Which event it is shown for is known first.
  const ready = chosen !== null || subjects.value !== undefined || subjects.failure !== undefined;
  const answer = useAnswer(async (signal) => {
    const asked = JSON.parse(settled);
    return ready ? { of: asked.occurrenceId, shown: await rules.previewMessage(asked, { signal }) } : undefined;
  }, `${ready} ${settled}`).value;
  const mistake = answer.failure?.fields.find(({ field }) => field === "message")?.description;
  return {
    subjects: subjects.value,
    occurrenceId,
    words: words.value,
    look(text) {
      words.value = text;
    },
    value: answer.value?.shown,
    isOfThis: answer.value?.of === occurrenceId,
    loading: answer.loading || !ready || request !== settled,
    mistake,
    failure: mistake === undefined ? (answer.failure ?? subjects.failure) : undefined,
    again: answer.failure ? answer.again : subjects.again,
  };
}
