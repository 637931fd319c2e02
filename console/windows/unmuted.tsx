import type { PreviewMaintenanceWindowResponse } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { linkTo } from "../data/address.ts";

/** The rules that notify about entities of a window all the same. */
export function UnmutedRules({ preview }: { preview: PreviewMaintenanceWindowResponse }) {
  const { unmutedRules: names, moreUnmutedRules: more } = preview;
  if (names.length === 0) return null;
  return (
    <p>
      Rules that will not be silent:{" "}
      {names.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <a href={linkTo(["rules", "rules", name])}>{name}</a>
        </span>
      ))}
      {more && " and others"}. Check <q>Keep silent about entities in maintenance</q> in a rule to mute it.
    </p>
  );
}
