import type { MessageInitShape } from "@bufbuild/protobuf";
import { signal } from "@preact/signals";
import type { SilenceSchema } from "#gen/belfry/notifications/v1/silence_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { say } from "../data/notice.ts";

const silences = clientOf(SilenceService);

/** Counts silences created or ended on this page; readers ask again. */
export const silenceChanges = signal(0);

const raise = () => {
  silenceChanges.value = silenceChanges.peek() + 1;
};

/** Ends a silence. */
export async function endSilence(id: string): Promise<void> {
  await silences.expireSilence({ id });
  raise();
}

/** Creates a silence, and says so; taking it back ends it. */
export async function createSilence(silence: MessageInitShape<typeof SilenceSchema>): Promise<void> {
  const { silence: made } = await silences.createSilence({ silence });
  raise();
  say("Silence created.", made && (() => endSilence(made.id)));
}
