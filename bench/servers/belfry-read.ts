// The port, the pipeline, the key check and the transcoder as src/server.ts joins them, with one RPC that reads no row.
import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { routes } from "#gen/routes.ts";
import { keyVerifier } from "../../src/auth/key-verifier.ts";
import { readConfig } from "../../src/config/settings.ts";
import { connect } from "../../src/db/connect.ts";
import { openPort } from "../../src/http/port.ts";
import { unreadResponses } from "../../src/http/unread-responses.ts";
import { openLog } from "../../src/rpc/log.ts";
import { pipeline } from "../../src/rpc/pipeline.ts";
import { requestMemory } from "../../src/rpc/request-memory.ts";
import type { Sources } from "../../src/telemetry/families.ts";
import { startTelemetry } from "../../src/telemetry/start.ts";
import { given, serving } from "./child.ts";
import { event } from "./event.ts";

const config = readConfig(given());
const log = openLog("info");
const pool = connect(config.databaseUrl ?? "", config);
const { verify } = keyVerifier(pool);
const { admit, implement } = pipeline({ verify, gate: pool.gate, log });
const service: DescService = EventQueryService;
const reads: Partial<ServiceImpl<typeof EventQueryService>> = { getEvent: async () => event };
const services = [{ service, implementation: implement(service, reads as Partial<ServiceImpl<DescService>>) }];
// Nothing reads the metrics here, so they have no sources.
const telemetry = await startTelemetry(config, {} as Sources, log);
const port = await openPort({
  config,
  tls: undefined,
  services,
  admit,
  routes: routes.filter(({ method }) => method.parent.typeName === service.typeName),
  bodies: requestMemory(config.bodyBytesMax),
  untaken: unreadResponses({ bytesMax: config.answerBytesMax, stallMs: config.streamIdleMs }),
  readers: new Map(),
  foreign: new Map(),
  aliases: { services: new Map(), keyHeaders: [] },
  stopping: new AbortController(),
  ended: telemetry.ended,
  morePages() {},
  notReady: () => undefined,
  log,
});
serving(port.address.port);
