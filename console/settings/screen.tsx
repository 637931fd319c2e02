import type { ComponentType } from "preact";
import { address } from "../data/address.ts";
import { Sections } from "../ui/sections.tsx";
import { Accounts } from "./accounts/accounts.tsx";
import { Audit } from "./audit/audit.tsx";
import { Credentials } from "./credentials/credentials.tsx";
import { Dictionary } from "./dictionary/dictionary.tsx";
import { Groups } from "./groups/groups.tsx";
import { Keys } from "./keys/keys.tsx";
import { Properties } from "./properties/properties.tsx";
import { SendData } from "./send/send-data.tsx";

export const sections: Readonly<Record<string, { label: string; Section: ComponentType }>> = {
  send: { label: "Send data", Section: SendData },
  keys: { label: "Keys", Section: Keys },
  accounts: { label: "Accounts", Section: Accounts },
  groups: { label: "Groups", Section: Groups },
  credentials: { label: "Credentials", Section: Credentials },
  dictionary: { label: "Dictionary", Section: Dictionary },
  properties: { label: "Custom properties", Section: Properties },
  audit: { label: "Audit log", Section: Audit },
};

/** What is set once for a tenant, and the way to send it the first data. */
export function SettingsScreen() {
  return <Sections screen="settings" sections={sections} open={address.value.path[1] || "send"} />;
}
