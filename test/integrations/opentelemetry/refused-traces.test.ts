import { DiagLogLevel, diag } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { testServer } from "../../support/server.ts";
import { testTenant } from "../../support/tenant.ts";

const server = await testServer();
const { headers } = await testTenant(server.database.sql);

test("an SDK that is set up by the variables of docs/opentelemetry.md logs how to stop sending traces", async () => {
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: server.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${headers["service-api-key"]}`,
    OTEL_BSP_SCHEDULE_DELAY: "10",
  });
  const lines: string[] = [];
  const keep = (line: string, ...more: unknown[]) =>
    lines.push([line, ...more.map((each) => JSON.stringify(each))].join(" "));
  diag.setLogger({ error: keep, warn: keep, info: keep, debug: keep, verbose: keep }, DiagLogLevel.WARN);

  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
  provider.getTracer("shop").startSpan("an order").end();
  await expect.poll(() => lines).toHaveLength(1);
  await provider.shutdown();
  expect(lines).toEqual([
    expect.stringMatching(/traces are not stored here.*OTEL_TRACES_EXPORTER=none keeps an SDK from sending traces/),
  ]);
});
