import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";

/**
 * The source of a proto2 file, printed from its descriptor: messages, enums, extensions and the options that decide about
 * bytes and JSON. Comments and custom options are left out. Throws on what it does not know how to print.
 */
export function printProto(file: FileDescriptorProto): string {
  if (file.syntax !== "" && file.syntax !== "proto2")
    throw new Error(`${file.name}: syntax ${file.syntax} cannot be printed`);
  const lines = ['syntax = "proto2";', "", `package ${file.package};`, ""];
  for (const path of file.dependency) lines.push(`import "${path}";`);
  lines.push("");
  if (file.options?.goPackage) lines.push(`option go_package = "${file.options.goPackage}";`);
  if (file.options?.javaMultipleFiles) lines.push("option java_multiple_files = true;");
  if (file.options?.javaOuterClassname)
    lines.push(`option java_outer_classname = "${file.options.javaOuterClassname}";`);
  if (file.options?.javaPackage) lines.push(`option java_package = "${file.options.javaPackage}";`);
  for (const message of file.messageType) lines.push("", ...printMessage(message));
  for (const enumeration of file.enumType) lines.push("", ...printEnum(enumeration));
  for (const field of file.extension) lines.push("", `extend ${field.extendee} {`, `  ${printField(field)}`, "}");
  return `${lines.join("\n")}\n`;
}

function printMessage(message: DescriptorProto): string[] {
  if (message.options?.mapEntry) throw new Error(`${message.name}: maps cannot be printed`);
  const body: string[] = [];
  for (const nested of message.enumType) body.push(...printEnum(nested));
  for (const nested of message.nestedType) body.push(...printMessage(nested));
  const printed = new Set<number>();
  for (const field of message.field) {
    if (!inOneof(field)) body.push(printField(field));
    else if (!printed.has(field.oneofIndex)) {
      const members = message.field.filter((other) => inOneof(other) && other.oneofIndex === field.oneofIndex);
      printed.add(field.oneofIndex);
      body.push(
        `oneof ${message.oneofDecl[field.oneofIndex]?.name} {`,
        ...indent(members.map((member) => printField(member, ""))),
        "}",
      );
    }
  }
  for (const range of message.extensionRange) body.push(`extensions ${printRange(range.start, range.end)};`);
  for (const range of message.reservedRange) body.push(`reserved ${printRange(range.start, range.end)};`);
  for (const name of message.reservedName) body.push(`reserved "${name}";`);
  return [`message ${message.name} {`, ...indent(body), "}"];
}

function printEnum(enumeration: EnumDescriptorProto): string[] {
  const body = enumeration.value.map((value) => `${value.name} = ${value.number};`);
  if (enumeration.options?.allowAlias) body.unshift("option allow_alias = true;");
  for (const range of enumeration.reservedRange) body.push(`reserved ${range.start} to ${range.end};`);
  for (const name of enumeration.reservedName) body.push(`reserved "${name}";`);
  return [`enum ${enumeration.name} {`, ...indent(body), "}"];
}

function printField(field: FieldDescriptorProto, label = `${Label[field.label].toLowerCase()} `): string {
  if (field.type === Type.GROUP) throw new Error(`${field.name}: groups cannot be printed`);
  const type = field.typeName || Type[field.type].toLowerCase();
  const options: string[] = [];
  if (field.options?.deprecated) options.push("deprecated = true");
  if (field.options?.packed) options.push("packed = true");
  if (field.defaultValue)
    options.push(`default = ${field.type === Type.STRING ? JSON.stringify(field.defaultValue) : field.defaultValue}`);
  return `${label}${type} ${field.name} = ${field.number}${options.length > 0 ? ` [${options.join(", ")}]` : ""};`;
}

/** proto2 has no synthetic oneofs: every index names a written one; absent is reported by presence, as 0 is an index too. */
function inOneof(field: FieldDescriptorProto): boolean {
  return Object.hasOwn(field, "oneofIndex");
}

function printRange(start: number, end: number): string {
  return end === 536870912 ? `${start} to max` : `${start} to ${end - 1}`;
}

function indent(lines: string[]): string[] {
  return lines.map((line) => (line === "" ? line : `  ${line}`));
}
