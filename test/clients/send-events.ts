// A program of its own that sends events in one client stream: @grpc/grpc-js, and messages that @grpc/proto-loader makes
// of the proto files, so nothing of it is ours. Prints the answer, or the error.
//
//     node send-events.ts <host:port> <CA certificate file> <key> <count>
import { readFileSync } from "node:fs";
import { credentials, loadPackageDefinition, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [target = "", caFile = "", key = "", count = "0"] = process.argv.slice(2);
const root = new URL("../..", import.meta.url).pathname;
const protos = loadSync("belfry/receiver/v1/receiver_service.proto", {
  includeDirs: [`${root}proto`, `${root}gen`],
});
// biome-ignore lint/suspicious/noExplicitAny: this package makes its clients at run time
const { DataReceiverService } = (loadPackageDefinition(protos) as any).belfry.receiver.v1;
const client = new DataReceiverService(target, credentials.createSsl(readFileSync(caFile)));
const metadata = new Metadata();
metadata.set("service-api-key", key);

const call = client.PutEvent(metadata, (error: { code: number; details: string } | null, answer: unknown) => {
  console.log(JSON.stringify(error === null ? { answer } : { error: { code: error.code, details: error.details } }));
  client.close();
});
const now = Date.now();
for (let i = 0; i < Number(count); i++) {
  const event = { name: `event ${i}`, timestamp: now, dimensions: { source: `host ${i % 10}` }, severity: i % 6 };
  if (!call.write({ canonical: event })) await new Promise((resolve) => call.once("drain", resolve));
}
call.end();
