import type { DescMethod } from "@bufbuild/protobuf";
import type { ComponentType } from "preact";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
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

export const sections: Readonly<Record<string, { label: string; Section: ComponentType; reads?: DescMethod }>> = {
  send: { label: "Send data", Section: SendData },
  keys: { label: "Keys", Section: Keys, reads: ApiClientService.method.listApiClients },
  accounts: { label: "Accounts", Section: Accounts, reads: UserAccountService.method.listUserAccounts },
  groups: { label: "Groups", Section: Groups, reads: UserGroupService.method.listUserGroups },
  credentials: { label: "Credentials", Section: Credentials, reads: CredentialService.method.listCredentials },
  dictionary: { label: "Dictionary", Section: Dictionary },
  properties: { label: "Custom properties", Section: Properties },
  audit: { label: "Audit log", Section: Audit, reads: AuditLogService.method.listAuditEntries },
};

/** Shows the settings of a tenant, and the way to send its first data. */
export function SettingsScreen() {
  return <Sections screen="settings" sections={sections} open={address.value.path[1] || "send"} />;
}
