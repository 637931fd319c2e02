import type { EntityRow } from "../../entities/messages.ts";
import type { Holds } from "../subject/notice.ts";
import { holding, type LoadedSilence } from "./silences-in-force.ts";

/** Whether an entity is in a maintenance window, of which `decide` hears before it decides. */
export const inMaintenance = (entity: Pick<EntityRow, "window_production_state"> | undefined): boolean =>
  (entity?.window_production_state ?? null) !== null;

/** Returns, by destination, which of these silences holds a rule's notifications. */
export function holdsOf(
  silences: readonly LoadedSilence[],
  { name, destinationNames }: { readonly name: string; readonly destinationNames: readonly string[] },
): Holds {
  return new Map(
    destinationNames.flatMap((destination) => {
      const silence = holding(silences, name, destination);
      return silence === undefined ? [] : [[destination, { silenceId: silence.id, untilMs: untilMsOf(silence) }]];
    }),
  );
}

/** What a silence holds that ends with what it matched is due at its end, or never by itself. */
export const neverMs = 253_402_300_799_999;
export const untilMsOf = ({ endsMs }: LoadedSilence) => Math.min(endsMs, neverMs);
