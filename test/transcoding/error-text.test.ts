import { createRegistry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { errorText } from "../../src/transcoding/error-text.ts";
import { jsonWriter } from "../../src/transcoding/json/write-json.ts";

const registry = createRegistry(RetryInfoSchema);

test.each([
  ["whose bytes are broken", { type: "google.rpc.RetryInfo", value: Buffer.from([255, 255]) }],
  ["that JSON cannot hold", { desc: RetryInfoSchema, value: { retryDelay: { seconds: 10n ** 15n } } }],
  ["that nobody knows", { type: "google.rpc.RetryInfo2", value: Buffer.alloc(0) }],
])("an error with a detail %s is answered all the same", (_name, detail) => {
  const error = new ConnectError("no room", Code.ResourceExhausted);
  error.details = [detail as never];
  const told = JSON.parse(errorText(error, registry, jsonWriter(registry)));
  expect(told).toMatchObject({ code: 8, message: "no room" });
  expect(told.details[0]["@type"]).toMatch(/^type\.googleapis\.com\/google\.rpc\.RetryInfo/);
});
