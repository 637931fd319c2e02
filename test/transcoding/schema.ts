import { execFileSync } from "node:child_process";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The buf configuration of the foreign schema and what it imports, as `--config` takes it. */
export const foreignConfig = JSON.stringify({
  version: "v2",
  modules: [
    { path: "test/transcoding/proto" },
    { path: "proto", includes: ["proto/belfry/transcoding"] },
    {
      path: "node_modules/google-proto-files",
      includes: ["google/api", "google/rpc"].map((folder) => `node_modules/google-proto-files/${folder}`),
      excludes: [
        ...["apikeys", "cloudquotas", "expr", "servicecontrol", "servicemanagement", "serviceusage"].map(
          (f) => `api/${f}`,
        ),
        "rpc/context",
      ].map((folder) => `node_modules/google-proto-files/google/${folder}`),
    },
  ],
});

/** A schema that is none of ours (test/transcoding/proto), compiled by buf. */
export const foreign = createFileRegistry(
  fromBinary(
    FileDescriptorSetSchema,
    execFileSync("node_modules/.bin/buf", ["build", "--config", foreignConfig, "-o", "-#format=binpb"], {
      maxBuffer: 64 << 20,
    }),
  ),
);

/** The message of this name in the foreign schema. */
export function foreignMessage(name: string) {
  const message = foreign.getMessage(`foreign.v1.${name}`);
  if (message === undefined) throw new Error(`no message foreign.v1.${name}`);
  return message;
}

/** The service that exercises each binding form. */
export function libraryService() {
  const service = foreign.getService("foreign.v1.LibraryService");
  if (service === undefined) throw new Error("no service foreign.v1.LibraryService");
  return service;
}
