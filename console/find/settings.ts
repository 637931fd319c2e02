import type { DescMethod } from "@bufbuild/protobuf";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { session } from "../data/session.ts";
import { type Found, holdsAll, ofKindMax, type Source } from "./found.ts";

const clients = clientOf(ApiClientService);
const accounts = clientOf(UserAccountService);
const groups = clientOf(UserGroupService);
const credentials = clientOf(CredentialService);
const metrics = clientOf(MetricDictionaryService);
const updaters = clientOf(CustomPropertyUpdaterService);

const pageSize = 1000;
const keptMs = 15_000;

/**
 * A kind whose list the API filters by no name: its first thousand are read, and looked through here. What was read serves
 * while a person types.
 */
function listed(method: DescMethod, read: () => Promise<Found[]>): Source {
  let kept: { all: Promise<Found[]>; atMs: number; of: string | undefined } | undefined;
  return {
    method,
    async find(words) {
      const of = session.peek()?.id;
      if (kept === undefined || kept.of !== of || Date.now() - kept.atMs > keptMs) {
        kept = { all: read(), atMs: Date.now(), of };
      }
      try {
        return (await kept.all).filter((each) => holdsAll(each, words)).slice(0, ofKindMax);
      } catch (error) {
        kept = undefined;
        throw error;
      }
    },
  };
}

/** What is found among the settings. */
export const settingsSources: readonly Source[] = [
  listed(MetricDictionaryService.method.listMetricEntries, async () =>
    (await metrics.listMetricEntries({ pageSize })).metrics.map(({ name, label }) => ({
      kind: "Dictionary",
      name,
      beside: label,
      hash: linkTo(["settings", "dictionary", "metrics", name]),
    })),
  ),
  listed(ApiClientService.method.listApiClients, async () =>
    (await clients.listApiClients({ pageSize })).apiClients.map(({ id, name }) => ({
      kind: "Keys",
      name,
      hash: linkTo(["settings", "keys", id]),
    })),
  ),
  listed(UserAccountService.method.listUserAccounts, async () =>
    (await accounts.listUserAccounts({ pageSize })).users.map(({ id, email, firstName, lastName }) => ({
      kind: "Accounts",
      name: email,
      beside: `${firstName} ${lastName}`.trim(),
      hash: linkTo(["settings", "accounts", id]),
    })),
  ),
  listed(UserGroupService.method.listUserGroups, async () =>
    (await groups.listUserGroups({ pageSize })).groups.map(({ name }) => ({
      kind: "Groups",
      name,
      hash: linkTo(["settings", "groups", name]),
    })),
  ),
  listed(CredentialService.method.listCredentials, async () =>
    (await credentials.listCredentials({ pageSize })).credentials.map(({ id, info }) => ({
      kind: "Credentials",
      name: info?.name ?? "",
      hash: linkTo(["settings", "credentials", id]),
    })),
  ),
  listed(CustomPropertyUpdaterService.method.listCustomPropertyUpdaters, async () =>
    (await updaters.listCustomPropertyUpdaters({ pageInput: { limit: pageSize } })).updaters.map(({ id, name }) => ({
      kind: "Updaters",
      name,
      hash: linkTo(["settings", "properties", id]),
    })),
  ),
];
