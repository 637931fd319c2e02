import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import type { Calls, World } from "../support/calls.ts";

async function entity({ client, tenant, mark }: World): Promise<string> {
  const dimensions = { source: mark };
  await client(DataReceiverService).putModels({ models: [{ timestamp: BigInt(Date.now()), dimensions }] });
  return idText(entityId(tenant.id, dimensions));
}

const ofEntity = (id: string) => ({ selection: { case: "withIds", value: { ids: [id] } } });

/** Disabled, so that no job of it changes anything while the test looks. */
const updater = (mark: string) => ({
  name: mark,
  entityInput: { clause: { withIds: { ids: [mark] } } },
  properties: { owner: mark },
});

async function made({ client, mark }: World): Promise<string> {
  const { results } = await client(CustomPropertyUpdaterService).createCustomPropertyUpdaters({
    updaters: [updater(mark)],
  });
  return results[0]?.id ?? "";
}

export const calls: Calls = {
  "CustomPropertyService/SetCustomProperties": {
    request: async (world) => ({ input: ofEntity(await entity(world)), properties: { owner: world.mark } }),
    elsewhere: "his own",
  },
  "CustomPropertyService/DeleteCustomProperties": {
    request: async (world) => ({ input: ofEntity(await entity(world)) }),
    elsewhere: "his own",
  },
  "CustomPropertyUpdaterService/CreateCustomPropertyUpdaters": {
    request: ({ mark }) => ({ updaters: [updater(mark)] }),
    elsewhere: "his own",
  },
  "CustomPropertyUpdaterService/ReplaceCustomPropertyUpdaters": {
    request: async (world) => ({ updaters: [{ ...updater(world.mark), id: await made(world) }] }),
    elsewhere: "his own",
  },
  "CustomPropertyUpdaterService/DeleteCustomPropertyUpdaters": {
    request: async (world) => ({ ids: [await made(world)] }),
    elsewhere: "his own",
  },
  "CustomPropertyUpdaterService/ListCustomPropertyUpdaters": {
    request: async (world) => {
      await made(world);
      return {};
    },
    elsewhere: "nothing",
  },
  "CustomPropertyUpdaterService/SwitchCustomPropertyUpdaters": {
    request: async (world) => ({ ids: [await made(world)], action: 1 }),
    elsewhere: "his own",
  },
};
