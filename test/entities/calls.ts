import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { type Calls, nothing } from "../support/calls.ts";

export const calls: Calls = {
  "EntityService/SearchEntities": nothing(async ({ client, mark }) => {
    const dimensions = { source: mark };
    await client(DataReceiverService).putModels({ models: [{ timestamp: BigInt(Date.now()), dimensions }] });
    const filter = {
      operation: 1,
      field: "dimensions.source",
      value: { kind: { case: "stringValue", value: mark } },
    };
    return { searchInput: { query: { clause: { filter } } } };
  }),
  "EntityService/ListDefaultFields": nothing(async ({ client, mark }) => {
    const dimensions = { [mark]: "1" };
    await client(DataReceiverService).putModels({ models: [{ timestamp: BigInt(Date.now()), dimensions }] });
    return { option: 1 };
  }),
};
