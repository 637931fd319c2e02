import type { Transport } from "@connectrpc/connect";
import { startAddress } from "../data/address.ts";
import { lookAtBrowser } from "../data/alerts.ts";
import { carryCalls } from "../data/calls.ts";
import { startHealth } from "../data/health.ts";
import { startInSight } from "../data/in-sight.ts";
import { startLive } from "../data/live.ts";
import { startTheme } from "../data/preferences.ts";
import { startRunningWindows } from "../data/running-windows.ts";
import { startSession } from "../data/session.ts";
import { startNarrow } from "../ui/narrow.ts";
import { startClock } from "../ui/time.tsx";

/** Starts what follows the browser and its other tabs; modules do nothing when they are loaded. Called once, before the page is drawn. */
export function startPage(transport: Transport): void {
  carryCalls(transport);
  startAddress();
  startInSight();
  lookAtBrowser();
  startNarrow();
  startClock();
  startTheme();
  startSession();
  startLive();
  startHealth();
  startRunningWindows();
}
