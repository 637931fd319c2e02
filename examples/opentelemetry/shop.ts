// Sends metrics and events by OpenTelemetry's SDK, which knows nothing of Belfry: the usual variables say where they go.
//
//     node examples/opentelemetry/shop.ts [orders]
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { SeverityNumber } from "@opentelemetry/api-logs";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-proto";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";

const orders = Number(process.argv[2] ?? 20);

// The entity: service.name and service.instance.id identify it, the rest becomes its metadata.
const resource = resourceFromAttributes({
  "service.name": "shop",
  "service.instance.id": `shop@${hostname()}`,
  "host.name": hostname(),
});

const reader = new PeriodicExportingMetricReader({
  exporter: new OTLPMetricExporter(),
  exportIntervalMillis: 10_000,
});
const meters = new MeterProvider({ resource, readers: [reader] });
const meter = meters.getMeter("shop");
const taken = meter.createCounter("shop.orders", { unit: "{order}", description: "Orders taken" });
const amount = meter.createHistogram("shop.order.amount", {
  unit: "EUR",
  description: "What an order is worth",
  advice: { explicitBucketBoundaries: [10, 50, 100] },
});
const stock = meter.createObservableGauge("shop.stock", { unit: "{item}", description: "Items in stock" });
let items = 100;
stock.addCallback((result) => result.observe(items));

const logs = new LoggerProvider({
  resource,
  processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
});
const logger = logs.getLogger("shop");

for (let i = 0; i < orders; i += 1) {
  taken.add(1, { "payment.method": i % 3 === 0 ? "invoice" : "card" });
  amount.record(10 * ((i % 15) + 1));
  items -= 3;
  await sleep(20);
}
if (items < 50) {
  // A log record with the name of an event is an event; without one it is none, and is not kept.
  logger.emit({
    eventName: "stock.low",
    severityNumber: SeverityNumber.WARN,
    body: `${items} items are left`,
    attributes: { "shop.stock": items },
  });
}

// What is left is sent before the program ends.
await meters.shutdown();
await logs.shutdown();
console.log(`${orders} orders were taken, ${items} items are left`);
