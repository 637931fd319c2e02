import { installed } from "../integrations/programs.ts";
import { alertArgs, alertmanagers, alertRules, compareAlerts, startAlertmanager } from "./alerts.ts";
import type { Part } from "./beside.ts";
import { compareSamples, startPrometheus } from "./prometheus-program.ts";
import type { Tenant } from "./stage.ts";

const scrapeSec = 10;
/** By then Prometheus has found where its alerts go. */
const knownSec = 30;

/**
 * Debian's Prometheus, which writes what it scrapes of itself to each server and sends each its alerts; and Debian's Alertmanager, which hears
 * of the same alerts and reports them to each server by its webhook, in a tenant of its own. Undefined where they are not installed.
 */
export async function prometheusBeside(
  stack: AsyncDisposableStack,
  urls: readonly string[],
  [alerted, byWebhook]: readonly [Tenant, Tenant],
): Promise<Part | undefined> {
  if (!installed("prometheus")) return undefined;
  const withAlertmanager = installed("prometheus-alertmanager");
  const between = withAlertmanager ? [{ url: await startAlertmanager(stack, urls, byWebhook.agent) }] : [];
  const key = alerted.agent["service-api-key"] as string;
  const prometheus = await startPrometheus(stack, urls, alerted.agent, {
    scrapeSec,
    rules: alertRules,
    args: alertArgs,
    alerting: alertmanagers([...urls.map((url) => ({ url, key })), ...between]),
  });
  const startSec = Date.now() / 1000 + knownSec;
  let samples = "";
  return {
    beside: { name: "looks at Prometheus", restMs: 10_000, turn: async () => {} },
    progress: () => samples,
    async compare(db) {
      const wrong = await compareAlerts(db, alerted, prometheus, startSec);
      if (withAlertmanager)
        wrong.push(
          ...(await compareAlerts(db, byWebhook, prometheus, startSec)).map((line) => `by the webhook: ${line}`),
        );
      const [url] = urls as [string];
      try {
        const counts = await compareSamples(prometheus, url, alerted.manager);
        samples = `Prometheus: ${counts.samples} samples of ${counts.series} series`;
      } catch (error) {
        wrong.push((error as Error).message);
      }
      return wrong;
    },
  };
}
