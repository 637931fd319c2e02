import type { ComponentType } from "preact";
import { address } from "../frame/address.ts";
import { Sections } from "../parts/sections.tsx";
import { Credentials } from "./credentials/credentials.tsx";
import { SendData } from "./send/send-data.tsx";

export const sections: Readonly<Record<string, { label: string; Section: ComponentType }>> = {
  send: { label: "Send data", Section: SendData },
  credentials: { label: "Credentials", Section: Credentials },
};

/** What is set once for a tenant, and the way to send it the first data. */
export function SettingsScreen() {
  return <Sections screen="settings" sections={sections} open={address.value.path[1] || "send"} />;
}
