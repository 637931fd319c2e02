import type { Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import ui from "../ui/ui.module.css";
import { LinkOut, webAddress } from "../ui/web-address.tsx";
import occurrenceLook from "./occurrence.module.css";

/** What senders call the addresses of pages about an alert, the first one that is there. */
const pages = [
  ["Runbook", ["runbook_url", "runbook", "runbookUrl"]],
  ["Graph", ["generatorURL", "graph_url", "graph"]],
  ["Dashboard", ["dashboard_url", "dashboardURL", "dashboard"]],
] as const;

/** Alertmanager's annotations arrive under this prefix. */
const annotationPrefix = "annotation.";

/** Buttons for the pages that an occurrence names, each with its host, so that the target is visible. */
export function LinksOut({ occurrence }: { occurrence: Occurrence }) {
  const values: Readonly<Record<string, unknown>> = { ...occurrence.dimensions, ...occurrence.metadataFields };
  const found = pages.flatMap(([word, names]) => {
    const href = names
      .map((name) => webAddress(values[name]) ?? webAddress(values[annotationPrefix + name]))
      .find((address) => address !== undefined);
    return href === undefined ? [] : [{ word, href }];
  });
  if (found.length === 0) return null;
  const look = `${ui.button} ${occurrenceLook.linkOut}`;
  return (
    <div class={ui.buttons}>
      {found.map(({ word, href }) => (
        <LinkOut key={word} href={href} text={`${word}: ${new URL(href).host}`} class={look} />
      ))}
    </div>
  );
}
