import type { Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import ui from "../ui/ui.module.css";
import { LinkOut, webAddress } from "../ui/web-address.tsx";

/** What senders call the addresses of pages about an alert, the first one that is there. */
const pages = [
  ["Runbook", ["runbook_url", "runbook", "runbookUrl"]],
  ["Graph", ["generatorURL", "graph_url", "graph"]],
  ["Dashboard", ["dashboard_url", "dashboardURL", "dashboard"]],
] as const;

/** Alertmanager's annotations arrive under this prefix. */
const annotationPrefix = "annotation.";

/** Buttons for the pages that an occurrence names. The pointer sees the address before it is opened. */
export function LinksOut({ occurrence }: { occurrence: Occurrence }) {
  const values: Readonly<Record<string, unknown>> = { ...occurrence.dimensions, ...occurrence.metadataFields };
  return pages.map(([word, names]) => {
    const href = names
      .map((name) => webAddress(values[name]) ?? webAddress(values[annotationPrefix + name]))
      .find((address) => address !== undefined);
    return href === undefined ? null : <LinkOut key={word} href={href} text={word} class={ui.button} />;
  });
}
