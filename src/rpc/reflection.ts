import { type AnyDesc, type DescExtension, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema, file_google_protobuf_descriptor } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { descriptorFile } from "#gen/descriptor-file.ts";
import type { ServerReflectionRequest } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { exhausted } from "../errors.ts";

// Some ten times what a tool asks that reads everything, one symbol after the other.
const questionsMax = 2000;

/** The answers of `ServerReflectionInfo`, of v1 and v1alpha alike: their messages are the same but for the package. */
export type Reflection = (requests: AsyncIterable<ServerReflectionRequest>) => AsyncGenerator<object>;

/**
 * gRPC's server reflection over these services, the files that declare them, and `more` files beside them
 * (github.com/grpc/grpc, doc/server-reflection.md). A file that is asked for comes with those it imports, each once a stream.
 */
export function reflection(services: readonly DescService[], more: readonly DescFile[]): Reflection {
  const schema = index([...services.map(({ file }) => file), ...more]);
  const names = services.map(({ typeName }) => typeName).sort();

  function answer({ messageRequest }: ServerReflectionRequest, sent: Set<DescFile>): object | undefined {
    const found = (file: DescFile | undefined) =>
      file && { case: "fileDescriptorResponse", value: { fileDescriptorProto: schema.bytesOf(file, sent) } };
    switch (messageRequest.case) {
      case "listServices":
        return { case: "listServicesResponse", value: { service: names.map((name) => ({ name })) } };
      case "fileByFilename":
        return found(schema.files.get(messageRequest.value));
      case "fileContainingSymbol":
        return found(schema.symbols.get(messageRequest.value));
      case "fileContainingExtension": {
        const { containingType, extensionNumber } = messageRequest.value;
        return found(schema.extensions.get(containingType)?.get(extensionNumber)?.file);
      }
      case "allExtensionNumbersOfType": {
        const baseTypeName = messageRequest.value;
        const extensionNumber = [...(schema.extensions.get(baseTypeName)?.keys() ?? [])];
        if (!schema.symbols.has(baseTypeName)) return undefined;
        return { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber } };
      }
      case undefined:
        return failure(Code.InvalidArgument, "the request asks nothing: message_request is not set");
    }
  }

  return async function* answers(requests) {
    const sent = new Set<DescFile>();
    let left = questionsMax;
    for await (const originalRequest of requests) {
      left -= 1;
      if (left < 0) throw exhausted(`a stream of reflection takes ${questionsMax} requests; begin another one`);
      const messageResponse =
        answer(originalRequest, sent) ?? failure(Code.NotFound, "this server's schema holds nothing of that name");
      yield { validHost: originalRequest.host, originalRequest, messageResponse };
    }
  };
}

function failure(errorCode: Code, errorMessage: string) {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** All files that these import, and what can be asked for in them. */
function index(roots: readonly DescFile[]) {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescExtension>>();
  const bytes = new Map<DescFile, Uint8Array>([
    [file_google_protobuf_descriptor, Buffer.from(descriptorFile, "base64")],
  ]);

  for (const root of roots) for (const file of withImports(root)) files.set(file.proto.name, file);
  for (const file of files.values()) {
    for (const desc of nestedTypes(file)) {
      for (const name of namesIn(desc)) symbols.set(name, file);
      if (desc.kind !== "extension") continue;
      const ofType = extensions.get(desc.extendee.typeName) ?? new Map<number, DescExtension>();
      extensions.set(desc.extendee.typeName, ofType.set(desc.number, desc));
    }
  }

  function bytesOf(file: DescFile, sent: Set<DescFile>): Uint8Array[] {
    const wanted = [file, ...[...withImports(file)].filter((each) => each !== file && !sent.has(each))];
    return wanted.map((each) => {
      sent.add(each);
      const known = bytes.get(each) ?? toBinary(FileDescriptorProtoSchema, each.proto);
      bytes.set(each, known);
      return known;
    });
  }
  return { files, symbols, extensions, bytesOf };
}

function withImports(file: DescFile, seen = new Set<DescFile>()): Set<DescFile> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const each of file.dependencies) withImports(each, seen);
  return seen;
}

/** The full names of a type, and of what has names within it. Values of an enum are named beside it. */
function namesIn(desc: AnyDesc): string[] {
  switch (desc.kind) {
    case "message":
      return [desc.typeName, ...[...desc.fields, ...desc.oneofs].map(({ name }) => `${desc.typeName}.${name}`)];
    case "service":
      return [desc.typeName, ...desc.methods.map(({ name }) => `${desc.typeName}.${name}`)];
    case "enum": {
      const scope = desc.typeName.slice(0, -desc.name.length);
      return [desc.typeName, ...desc.values.map(({ name }) => scope + name)];
    }
    case "extension":
      return [desc.typeName];
    default:
      return [];
  }
}
