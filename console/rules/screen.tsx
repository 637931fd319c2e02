import type { ComponentType } from "preact";
import { address } from "../data/address.ts";
import { Sections } from "../ui/sections.tsx";
import { Destinations } from "./destinations/destinations.tsx";
import { Guide } from "./guide/guide.tsx";
import { Rules } from "./rules/rules.tsx";
import { Triggers } from "./triggers/triggers.tsx";

export const sections: Readonly<Record<string, { label: string; Section: ComponentType }>> = {
  rules: { label: "Rules", Section: Rules },
  triggers: { label: "Triggers", Section: Triggers },
  destinations: { label: "Destinations", Section: Destinations },
  guide: { label: "Guide", Section: Guide },
};

/** Who hears of what: rules join triggers, which say what counts, with destinations, which say where it goes. */
export function RulesScreen() {
  return <Sections screen="rules" sections={sections} open={address.value.path[1] || "rules"} />;
}
