import { computed, signal } from "@preact/signals";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { may, session } from "../data/session.ts";

const silences = clientOf(SilenceService);

const held = signal<{ session: string | undefined; names: readonly string[] }>({ session: undefined, names: [] });

/** The names of the labels that open occurrences had when it was asked last; none before. */
export const labelNames = computed(() => (held.value.session === session.value?.id ? held.value.names : []));

/** Asks which labels open occurrences have, the first hundred by name. What is known stays if there is no answer. */
export async function askLabelNames(): Promise<void> {
  if (!may(SilenceService.method.previewSilence)) return;
  const of = session.peek()?.id;
  const every = { silence: { matchers: ['alertname!=""'] } };
  const answer = await silences.previewSilence(every).catch(() => undefined);
  if (answer === undefined) return;
  const names = answer.labels.map(({ name }) => name);
  if (JSON.stringify(names) !== JSON.stringify(held.peek().names) || held.peek().session !== of)
    held.value = { session: of, names };
}

let asked: string | undefined;

/** Asks once in a session. */
export function learnLabelNames(): void {
  const of = session.peek()?.id;
  if (asked === of) return;
  asked = of;
  void askLabelNames();
}
