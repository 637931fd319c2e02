import { type DescMessage, type DescMethod, type MessageShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { LoadRequest } from "../load/load.ts";

/** The requests of one call in each protocol, by the protocol's name. */
export interface Calls {
  rest: LoadRequest;
  connectJson: LoadRequest;
  connectBinary: LoadRequest;
  grpc: LoadRequest;
  grpcWeb?: LoadRequest;
  /** Of calls that have no side effects. */
  connectGet?: LoadRequest;
}

/** Makes the requests of a call. `rest` is its method and path below /v1; a POST takes the whole message as its body. */
export function callsOf<S extends DescMessage>(
  method: DescMethod & { input: S },
  message: MessageShape<S>,
  rest: { method: "GET" | "POST"; path: string },
  key: Record<string, string>,
): Calls {
  const path = `/${method.parent.typeName}/${method.name}`;
  const json = Buffer.from(toJsonString(method.input as S, message));
  const binary = Buffer.from(toBinary(method.input as S, message));
  const query = encodeURIComponent(json.toString());
  const post = (http: 1 | 2, type: string, body: Buffer, more = {}): LoadRequest => {
    return { http, method: "POST", path, headers: { ...key, "content-type": type, ...more }, body };
  };
  return {
    rest:
      rest.method === "GET" ? { http: 1, ...rest, headers: key } : { ...post(1, "application/json", json), ...rest },
    connectJson: post(1, "application/json", json, { "connect-protocol-version": "1" }),
    connectBinary: post(1, "application/proto", binary, { "connect-protocol-version": "1" }),
    grpc: post(2, "application/grpc", framed(binary), { te: "trailers" }),
    grpcWeb: post(1, "application/grpc-web+proto", framed(binary)),
    ...(rest.method === "GET" && {
      connectGet: { http: 1, method: "GET", path: `${path}?connect=v1&encoding=json&message=${query}`, headers: key },
    }),
  };
}

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}
