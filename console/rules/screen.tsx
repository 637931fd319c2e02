import type { ComponentType } from "preact";
import { address } from "../data/address.ts";
import { Sections } from "../ui/sections.tsx";
import { DeadMansSwitch } from "./dead-mans-switch/form.tsx";
import { Destinations } from "./destinations/destinations.tsx";
import { Guide } from "./guide/guide.tsx";
import { Rules } from "./rules/rules.tsx";
import { Triggers } from "./triggers/triggers.tsx";

export const sections: Readonly<Record<string, { label: string; Section: ComponentType }>> = {
  rules: { label: "Rules", Section: Rules },
  triggers: { label: "Triggers", Section: Triggers },
  destinations: { label: "Destinations", Section: Destinations },
  "dead-mans-switch": { label: "Dead man's switch", Section: DeadMansSwitch },
  guide: { label: "Guide", Section: Guide },
};

/** Who is notified of what: rules say which alerts notify which destinations; triggers are for what matchers cannot say. */
export function RulesScreen() {
  return <Sections screen="rules" sections={sections} open={address.value.path[1] || "rules"} />;
}
