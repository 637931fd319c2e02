import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { after, type Calls, hisOwn, nothing, type World } from "../support/calls.ts";

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
  "CustomPropertyService/SetCustomProperties": hisOwn(async (world) => ({
    input: ofEntity(await entity(world)),
    properties: { owner: world.mark },
  })),
  "CustomPropertyService/DeleteCustomProperties": hisOwn(async (world) => ({ input: ofEntity(await entity(world)) })),
  "CustomPropertyUpdaterService/CreateCustomPropertyUpdaters": hisOwn(({ mark }) => ({ updaters: [updater(mark)] })),
  "CustomPropertyUpdaterService/ReplaceCustomPropertyUpdaters": hisOwn(async (world) => ({
    updaters: [{ ...updater(world.mark), id: await made(world) }],
  })),
  "CustomPropertyUpdaterService/DeleteCustomPropertyUpdaters": hisOwn(async (world) => ({ ids: [await made(world)] })),
  "CustomPropertyUpdaterService/ListCustomPropertyUpdaters": nothing(after(made)),
  "CustomPropertyUpdaterService/SwitchCustomPropertyUpdaters": hisOwn(async (world) => ({
    ids: [await made(world)],
    action: 1,
  })),
};
