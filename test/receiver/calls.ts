import { type Calls, hisOwn, type World } from "../support/calls.ts";

const timestamp = () => BigInt(Date.now());
const model = ({ mark }: World) => ({ timestamp: timestamp(), dimensions: { source: mark } });
const event = ({ mark }: World) => ({ timestamp: timestamp(), name: mark, dimensions: { source: mark }, severity: 4 });
const point = ({ mark }: World) => ({ timestamp: timestamp(), metric: mark, value: 1, dimensions: { source: mark } });

export const calls: Calls = {
  "DataReceiverService/PutModels": hisOwn((world) => ({ models: [model(world)] })),
  "DataReceiverService/PutEvents": hisOwn((world) => ({ events: [event(world)] })),
  "DataReceiverService/PutMetrics": hisOwn((world) => ({ metrics: [point(world)] })),
  "DataReceiverService/PutMetric": hisOwn((world) => [{ metric: { case: "canonical", value: point(world) } }]),
  "DataReceiverService/PutModel": hisOwn((world) => [{ model: { case: "canonical", value: model(world) } }]),
  "DataReceiverService/PutEvent": hisOwn((world) => [{ event: { case: "canonical", value: event(world) } }]),
};
