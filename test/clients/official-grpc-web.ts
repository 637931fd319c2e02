// Runs in a browser, as a part of page.ts: the official gRPC-Web client, bound to methods as its generated code binds it.
import { create, type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { GrpcWebClientBase, MethodDescriptor, type RpcError } from "grpc-web";
import { EventQueryService, type WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";

type Headers = Record<string, string>;

/** How messages travel: `text` is `application/grpc-web-text`, the client's default; `binary` is `application/grpc-web+proto`. */
export type Format = "text" | "binary";

const { putEvents } = DataReceiverService.method;
const { searchEvents, watchEvents } = EventQueryService.method;

/** Binds a method to the functions that make and read its bytes. The client never makes messages itself. */
function bound<Input extends DescMessage, Output extends DescMessage>({
  parent,
  name,
  methodKind,
  input,
  output,
}: DescMethod & { input: Input; output: Output }) {
  type Ways = [MessageShape<Input>, MessageShape<Output>];
  return new MethodDescriptor<Ways[0], Ways[1]>(
    `/${parent.typeName}/${name}`,
    methodKind,
    Object as never,
    Object as never,
    (request: Ways[0]) => toBinary(input, request),
    (bytes: Uint8Array) => fromBinary(output, bytes),
  );
}

const address = (url: string, { parent, name }: DescMethod) => `${url}/${parent.typeName}/${name}`;

/** Reads an error: its code, its message, and what its details name. */
function failureOf({ code, message, metadata }: RpcError) {
  const bytes = Uint8Array.from(atob(metadata["grpc-status-details-bin"] ?? ""), (sign) => sign.charCodeAt(0));
  const { details } = fromBinary(StatusSchema, bytes);
  const all = <Detail extends DescMessage>(schema: Detail) =>
    details.flatMap((any) => (any.typeUrl.endsWith(`/${schema.typeName}`) ? [fromBinary(schema, any.value)] : []));
  const fields = all(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field));
  return { code, message, fields, reasons: all(ErrorInfoSchema).map(({ reason }) => reason) };
}

/** Sends an event, finds it, and makes a mistake in a call and in a stream. */
export async function officialTour(url: string, headers: Headers, format: Format) {
  const client = new GrpcWebClientBase({ format });
  const search = (query?: object) =>
    client.unaryCall(
      address(url, searchEvents),
      create(searchEvents.input, query === undefined ? {} : { query }),
      headers,
      bound(searchEvents),
    );
  const event = { name: `seen in ${format}`, timestamp: BigInt(Date.now()), dimensions: { source: "official" } };
  const { succeeded } = await client.unaryCall(
    address(url, putEvents),
    create(putEvents.input, { events: [event] }),
    headers,
    bound(putEvents),
  );
  const { results } = await search({});
  const broken = await search().catch(failureOf);
  const mistaken = create(watchEvents.input, { query: {}, cursor: "x" });
  const brokenStream = await new Promise<ReturnType<typeof failureOf>>((resolve) => {
    client
      .serverStreaming(address(url, watchEvents), mistaken, headers, bound(watchEvents))
      .on("error", (error) => resolve(failureOf(error)));
  });
  return { succeeded, names: results.map(({ name }) => name), broken, brokenStream };
}

/**
 * Watches from a cursor until an event of this name is reported, then cancels; or until the server ends the stream at its
 * deadline. Returns the names, the last cursor, and the code that the server ended with. In `binary` the client reads a
 * stream only when it has ended.
 */
export function officialWatch(
  url: string,
  headers: Headers,
  format: Format,
  { until = "", cursor = "", deadlineMs = 0 },
) {
  const seen = { names: [] as string[], cursor };
  const deadline: Headers = deadlineMs > 0 ? { deadline: String(Date.now() + deadlineMs) } : {};
  return new Promise<typeof seen & { code?: number }>((resolve) => {
    const stream = new GrpcWebClientBase({ format }).serverStreaming(
      address(url, watchEvents),
      create(watchEvents.input, { query: {}, cursor }),
      { ...headers, ...deadline },
      bound(watchEvents),
    );
    stream.on("data", ({ event, cursor }: WatchEventsResponse) => {
      seen.cursor = cursor;
      if (event === undefined) Object.assign(globalThis, { watching: true });
      else seen.names.push(event.name ?? "");
      if (event === undefined || event.name !== until) return;
      stream.cancel();
      resolve(seen);
    });
    stream.on("error", ({ code }) => resolve({ ...seen, code }));
  });
}
