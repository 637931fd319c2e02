// Bare Fastify: two routes that answer a fixed object as JSON, and nothing else. It logs as it does by itself, two lines a
// request, or one that is made by hand.
import type { AddressInfo } from "node:net";
import fastify, { LogController } from "fastify";
import { openLog } from "../../src/rpc/log.ts";
import { given, serving } from "./child.ts";

const { read, put, oneLine } = given<{ read: object; put: object; oneLine?: true }>();
const log = openLog("info");
const app = fastify({
  loggerInstance: log,
  ...(oneLine && { logController: new LogController({ disableRequestLogging: true }) }),
  bodyLimit: 64 * 1024 * 1024,
});
if (oneLine) {
  app.addHook("onResponse", (request, reply, done) => {
    log.info({ requestId: request.id, target: request.url, status: reply.statusCode, ms: reply.elapsedTime });
    done();
  });
}
app.get("/v1/events/:id", (_request, reply) => reply.send(read));
app.post("/v1/data-receiver/events", (_request, reply) => reply.send(put));
await app.listen({ port: 0, host: "127.0.0.1" });
serving((app.server.address() as AddressInfo).port);
