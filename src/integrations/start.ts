import type { Config } from "../config/settings.ts";
import type { AskedLabels, OpenAlert } from "../events/open-alerts.ts";
import type { ForeignRoutes } from "../http/port.ts";
import { timeStarter } from "../wire/call.ts";
import { type ItemCounts, itemCounts, type Serving } from "./foreign-engine.ts";
import { integrationRoutes } from "./serve.ts";
import type { IntegrationParts } from "./table.ts";
import { integrations } from "./table.ts";

interface Options extends Omit<Serving, "counts" | "startTime"> {
  /** Aborts when running calls must end. */
  stopping: AbortSignal;
  config: Config;
  models: IntegrationParts["models"];
  events: IntegrationParts["events"];
  points: IntegrationParts["points"];
  /** The open occurrences that have the labels that are asked for, in pages. */
  openAlerts(tenantId: string, asked: AskedLabels): AsyncIterable<readonly OpenAlert[]>;
  standing: IntegrationParts["standing"];
  silences: IntegrationParts["silences"];
  keepsIdentity: IntegrationParts["keepsIdentity"];
  facts: IntegrationParts["facts"];
}

/** The protocols of other tools: their routes, and what came over them. */
export function startIntegrations({
  models,
  events,
  points,
  openAlerts,
  standing,
  silences,
  keepsIdentity,
  facts,
  stopping,
  ...serving
}: Options): {
  foreign: ForeignRoutes;
  stats: ItemCounts["all"];
} {
  const { config } = serving;
  const counts = itemCounts();
  const parts: IntegrationParts = {
    config,
    models,
    events,
    points,
    keepsIdentity,
    facts,
    lane: events.lane,
    alertsMax: config.receiverItemsMax,
    open: openAlerts,
    standing,
    silences,
  };
  const shared = { ...serving, counts, startTime: timeStarter(stopping) };
  return { foreign: integrationRoutes(integrations(parts), shared), stats: counts.all };
}
