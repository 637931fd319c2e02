import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { eventTrigger, webhook } from "../notifications/samples.ts";
import type { World } from "../support/calls.ts";

export type Make = (world: World, name: string, description: string) => Promise<unknown>;

export const small = { entityInput: { clause: { withIds: { ids: ["x"] } } }, properties: { a: "b" } };

function goodOf({ results }: { results: { error: string }[] }): void {
  if (results[0]?.error !== "") throw new Error(results[0]?.error);
}

const createUpdater = async ({ client }: World, updater: object) =>
  goodOf(
    await client(CustomPropertyUpdaterService).createCustomPropertyUpdaters({ updaters: [{ ...small, ...updater }] }),
  );

/** Kinds of which all may be read at once: bounded by number and by bytes. */
export const whole: Record<string, { make: Make; change: Make }> = {
  triggers: {
    make: ({ client }, name, description) =>
      client(TriggerService).createTrigger({ trigger: { name, description, type: eventTrigger("x") } }),
    change: ({ client }, name, description) =>
      client(TriggerService).updateTrigger({ trigger: { name, description }, updateMask: { paths: ["description"] } }),
  },
  destinations: {
    make: ({ client }, name, description) =>
      client(DestinationService).createDestination({ destination: { name, description, type: webhook("x") } }),
    change: ({ client }, name, description) =>
      client(DestinationService).replaceDestination({ destination: { name, description, type: webhook("x") } }),
  },
  rules: {
    make: ({ client }, name, description) => client(RuleService).createRule({ rule: { name, description } }),
    change: ({ client }, name, description) =>
      client(RuleService).updateRule({ rule: { name, description }, updateMask: { paths: ["description"] } }),
  },
  "dictionary entity field entries": {
    make: ({ client }, name, description) =>
      client(EntityFieldDictionaryService).createEntityField({ entityField: { name, description } }),
    change: ({ client }, name, description) =>
      client(EntityFieldDictionaryService).updateEntityField({
        entityField: { name, description },
        updateMask: { paths: ["description"] },
      }),
  },
  "dictionary metric entries": {
    make: ({ client }, name, description) =>
      client(MetricDictionaryService).createMetricEntry({ metric: { name, description } }),
    change: ({ client }, name, description) =>
      client(MetricDictionaryService).updateMetricEntry({
        metric: { name, description },
        updateMask: { paths: ["description"] },
      }),
  },
  "dictionary event field entries": {
    make: ({ client }, name, description) =>
      client(EventFieldDictionaryService).createEventField({ eventField: { name, description } }),
    change: ({ client }, name, description) =>
      client(EventFieldDictionaryService).updateEventField({
        eventField: { name, description },
        updateMask: { paths: ["description"] },
      }),
  },
  updaters: {
    make: (world, name, description) => createUpdater(world, { name, description }),
    async change({ client }, name, description) {
      const updaters = client(CustomPropertyUpdaterService);
      const { updaters: all } = await updaters.listCustomPropertyUpdaters({});
      const { id = "" } = all.find((each) => each.name === name) ?? {};
      const changed = { ...small, id, name, description };
      goodOf(await updaters.replaceCustomPropertyUpdaters({ updaters: [changed] }));
    },
  },
  credentials: {
    make: ({ client }, name, description) =>
      client(CredentialService).createCredential({ info: { name, description, type: "teamChat" } }),
    async change({ client }, name, description) {
      const { credentials } = await client(CredentialService).listCredentials({});
      const { id = "" } = credentials.find(({ info }) => info?.name === name) ?? {};
      await client(CredentialService).replaceCredential({ id, info: { name, description, type: "teamChat" } });
    },
  },
};

/** Kinds that are always listed by pages, or not at all: bounded by number. */
export const paged: Record<string, Make> = {
  "maintenance windows": ({ client }, name) =>
    client(MaintenanceWindowService).createMaintenanceWindow({
      specification: {
        name,
        runMode: 1,
        maintenanceState: 3,
        schedule: { start: BigInt(Date.now()), duration: 60_000n },
        target: { case: "withIds", value: { ids: ["x"] } },
      },
    }),
  "user groups": ({ client }, name) =>
    client(UserGroupService).createUserGroup({ group: { name, cloudRoles: ["user"] } }),
  "API clients": ({ client }, name) =>
    client(ApiClientService).createApiClient({ apiClient: { name, type: 3, role: "user" } }),
  "user accounts": ({ client }, name) =>
    client(UserAccountService).createUserAccount({ user: { email: `${name}@example.com`, password: "Abc1!Def2" } }),
};
