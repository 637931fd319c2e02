// @grpc/grpc-js with the same messages, encoded by the same library, one log line a request, and nothing else.
import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import {
  DataReceiverService,
  type PutEventsRequest,
  PutEventsResponseSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { openLog } from "../../src/rpc/log.ts";
import { serving } from "./child.ts";
import { event } from "./event.ts";

const log = openLog("info");
let count = 0;

function unary(
  service: { typeName: string },
  method: { name: string; input: DescMessage; output: DescMessage },
  answer: (request: Message) => Message,
) {
  const path = `/${service.typeName}/${method.name}`;
  const definition = {
    path,
    requestStream: false,
    responseStream: false,
    requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
    requestSerialize: (message: Message) => Buffer.from(toBinary(method.input, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
    // A view of the bytes, not a copy.
    responseSerialize: (message: Message) => {
      const { buffer, byteOffset, byteLength } = toBinary(method.output, message);
      return Buffer.from(buffer, byteOffset, byteLength);
    },
  };
  const handler = (call: ServerUnaryCall<Message, Message>, done: sendUnaryData<Message>) => {
    const startMs = performance.now();
    done(null, answer(call.request));
    count += 1;
    log.info({ requestId: count, rpc: path, code: "OK", ms: performance.now() - startMs });
  };
  return { definition, handler };
}

const getEvent = unary(EventQueryService, EventQueryService.method.getEvent, () => event);
const putEvents = unary(DataReceiverService, DataReceiverService.method.putEvents, (request) => {
  const { length } = (request as PutEventsRequest).events;
  return create(PutEventsResponseSchema, {
    succeeded: length,
    message: `${length} of ${length} events processed`,
  });
});

const server = new Server({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
server.addService({ getEvent: getEvent.definition }, { getEvent: getEvent.handler });
server.addService({ putEvents: putEvents.definition }, { putEvents: putEvents.handler });
const port = await new Promise<number>((resolve, reject) => {
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
    error === null ? resolve(bound) : reject(error),
  );
});
serving(port);
