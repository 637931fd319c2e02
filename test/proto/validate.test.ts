import { clone, type DescFile, toJson } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate as original } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "vitest";
import { file_buf_validate_validate as printed } from "#gen/buf/validate/validate_pb.ts";

/** Names in JSON that are the default, options of the extension range, and custom options do not decide about bytes. */
const unprinted = new Set(["jsonName", "declaration", "verification"]);

function structure(file: DescFile) {
  const text = JSON.stringify(toJson(FileDescriptorProtoSchema, clone(FileDescriptorProtoSchema, file.proto)));
  return JSON.parse(text, (key, value) => {
    if (unprinted.has(key) || (key === "options" && Object.keys(value).length === 0)) return undefined;
    return value;
  });
}

test("the printed buf/validate has every field, number and option of the original", () => {
  expect(structure(printed)).toEqual(structure(original));
});
