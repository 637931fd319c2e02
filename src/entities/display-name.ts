import { nameFromDimensions } from "./identity.ts";

const valuesMax = 3;

/** Says what people call an entity: the name that a model told, or else the shortest that its dimensions make. Two entities may be called the same. */
export function displayName(name: string, dimensions: Readonly<Record<string, string>>): string {
  return name === nameFromDimensions(dimensions) ? shortName(dimensions) || name : name;
}

function shortName(dimensions: Readonly<Record<string, string>>): string {
  const { instance = "", job = "", "service.name": service = "", "host.name": host = "" } = dimensions;
  if (instance !== "") return withoutPort(instance) + (job === "" || job === "node" ? "" : ` (${job})`);
  if (service !== "" && host !== "") return [service, host].join(" on ");
  const values = Object.values(dimensions).filter((value) => value.trim() !== "");
  return values
    .sort((a, b) => a.length - b.length)
    .slice(0, valuesMax)
    .join(" · ");
}

/** Cuts the port off; of an address of IPv6 only where that stands in brackets. */
const withoutPort = (instance: string) => instance.replace(/(?<=^[^:]+|\]):\d{1,5}$/, "");
