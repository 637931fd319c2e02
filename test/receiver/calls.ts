import type { Calls, World } from "../support/calls.ts";

const timestamp = () => BigInt(Date.now());
const model = ({ mark }: World) => ({ timestamp: timestamp(), dimensions: { source: mark } });
const event = ({ mark }: World) => ({ timestamp: timestamp(), name: mark, dimensions: { source: mark }, severity: 4 });

export const calls: Calls = {
  "DataReceiverService/PutModels": { request: (world) => ({ models: [model(world)] }), elsewhere: "his own" },
  "DataReceiverService/PutEvents": { request: (world) => ({ events: [event(world)] }), elsewhere: "his own" },
  "DataReceiverService/PutModel": {
    request: (world) => [{ model: { case: "canonical", value: model(world) } }],
    elsewhere: "his own",
  },
  "DataReceiverService/PutEvent": {
    request: (world) => [{ event: { case: "canonical", value: event(world) } }],
    elsewhere: "his own",
  },
};
