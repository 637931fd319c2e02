// Bare Fastify: two routes that answer a fixed object as JSON, one log line a request, and nothing else.
import type { AddressInfo } from "node:net";
import fastify, { LogController } from "fastify";
import { openLog } from "../../src/rpc/log.ts";
import { given, serving } from "./child.ts";

const { read, put } = given<{ read: object; put: object }>();
const log = openLog("info");
const app = fastify({
  loggerInstance: log,
  logController: new LogController({ disableRequestLogging: true }), // its own two lines a request
  bodyLimit: 64 * 1024 * 1024,
});
app.addHook("onResponse", (request, reply, done) => {
  log.info({ requestId: request.id, target: request.url, status: reply.statusCode, ms: reply.elapsedTime });
  done();
});
app.get("/v1/events/:id", (_request, reply) => reply.send(read));
app.post("/v1/data-receiver/events", (_request, reply) => reply.send(put));
await app.listen({ port: 0, host: "127.0.0.1" });
serving((app.server.address() as AddressInfo).port);
