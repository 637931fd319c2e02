import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

const requestHeaders = [
  "content-type",
  "content-encoding",
  "accept-encoding",
  "service-api-key",
  "authorization",
  "x-request-id",
  "connect-protocol-version",
  "connect-timeout-ms",
  "connect-content-encoding",
  "connect-accept-encoding",
  "grpc-timeout",
  "grpc-encoding",
  "grpc-accept-encoding",
  "x-grpc-web",
  "x-user-agent",
];

const answerHeaders = [
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  "content-encoding",
  "connect-content-encoding",
  "x-request-id",
  "retry-after",
];

/** Lets pages of these origins call, over Connect, gRPC-Web and /v1, with `more` headers than ours. Other OPTIONS requests than a browser's preflight pass on. */
export async function allowOrigins(
  app: FastifyInstance,
  origins: readonly string[],
  more: readonly string[] = [],
): Promise<void> {
  const common = {
    origin: origins.includes("*") ? "*" : [...origins],
    methods: ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"],
    allowedHeaders: [...requestHeaders, ...more],
    exposedHeaders: answerHeaders,
    maxAge: 7200,
  };
  await app.register(cors, {
    delegator: (request, done) => {
      const preflight = request.headers["access-control-request-method"] !== undefined;
      done(null, { ...common, preflight });
    },
  });
}
