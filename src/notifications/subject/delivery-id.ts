import { randomUUID } from "node:crypto";

/** A UUID version 7 of this time: such ids are found by the day that is in them. */
export function deliveryId(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** The least id of a delivery that was decided at this time, or later. */
export const firstId = (ms: number) => `${deliveryId(Math.max(0, Math.floor(ms))).slice(0, 14)}7000-0000-000000000000`;
