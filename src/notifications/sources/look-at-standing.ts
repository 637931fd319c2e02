import type { LookAtStanding } from "../deciding/standing.ts";
import { lookAtSeries } from "./look-at-series.ts";
import { lookAtWatches } from "./look-at-watches.ts";

/** How rules see what stands of each source but events. */
export const lookAtStanding: LookAtStanding = async (...of) =>
  new Map([...(await lookAtSeries(...of)), ...(await lookAtWatches(...of))]);
