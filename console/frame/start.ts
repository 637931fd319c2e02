import type { Transport } from "@connectrpc/connect";
import { startNarrow } from "../parts/narrow.ts";
import { startClock } from "../parts/time.tsx";
import { startAddress } from "./address.ts";
import { carryCalls } from "./calls.ts";
import { startLive } from "./live.ts";
import { startTheme } from "./preferences.ts";
import { startSession } from "./session.ts";

/** Starts what follows the browser and its other tabs; modules do nothing when they are loaded. Called once, before the page is drawn. */
export function startPage(transport: Transport): void {
  carryCalls(transport);
  startAddress();
  startNarrow();
  startClock();
  startTheme();
  startSession();
  startLive();
}
