import type { Calls, World } from "../support/calls.ts";

const timestamp = () => BigInt(Date.now());
const model = ({ mark }: World) => ({ timestamp: timestamp(), dimensions: { source: mark } });
const event = ({ mark }: World) => ({ timestamp: timestamp(), name: mark, dimensions: { source: mark }, severity: 4 });
const point = ({ mark }: World) => ({ timestamp: timestamp(), metric: mark, value: 1, dimensions: { source: mark } });

export const calls: Calls = {
  "DataReceiverService/PutModels": { request: (world) => ({ models: [model(world)] }), elsewhere: "his own" },
  "DataReceiverService/PutEvents": { request: (world) => ({ events: [event(world)] }), elsewhere: "his own" },
  "DataReceiverService/PutMetrics": { request: (world) => ({ metrics: [point(world)] }), elsewhere: "his own" },
  "DataReceiverService/PutMetric": {
    request: (world) => [{ metric: { case: "canonical", value: point(world) } }],
    elsewhere: "his own",
  },
  "DataReceiverService/PutModel": {
    request: (world) => [{ model: { case: "canonical", value: model(world) } }],
    elsewhere: "his own",
  },
  "DataReceiverService/PutEvent": {
    request: (world) => [{ event: { case: "canonical", value: event(world) } }],
    elsewhere: "his own",
  },
};
