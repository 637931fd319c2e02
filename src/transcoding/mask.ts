import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { fieldsByKey } from "./json/key-finder.ts";
import { keysOf } from "./json/path.ts";
import type { MessageValues } from "./json/values.ts";
import { fieldNamed, type Route } from "./routes/binding.ts";

/**
 * Fills the request's field mask, where the RPC declares one and the request leaves it out, from the keys that the JSON
 * body carries; `body` is the message of the body. undefined when the RPC declares none.
 */
export function maskFiller(
  route: Route,
  body: DescMessage | undefined,
): ((request: MessageValues, text: string) => void) | undefined {
  const { method } = route;
  if (body === undefined || !hasOption(method, update_mask)) return undefined;
  const name = getOption(method, update_mask);
  const mask = fieldNamed(method.input, name);
  if (mask?.message?.typeName !== "google.protobuf.FieldMask") {
    throw new Error(`${method.parent.typeName}.${method.name}: update_mask names ${name}, which is no field mask`);
  }
  const whole = route.body === "*";
  // What the path says is no change.
  const said = route.variables.map(({ path }) => (whole || path[0] !== route.body ? path : path.slice(1))[0] as string);
  const apart = new Set(whole ? [mask.name, ...said] : said);
  return (request, text) => {
    if (request[mask.localName] !== undefined) return;
    const paths = keysOf(text).flatMap(({ key, valueAt }) => {
      const field = fieldsByKey(body).get(key);
      if (field === undefined || apart.has(field.name)) return [];
      const inner = whole && field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message);
      if (!inner || text[valueAt] !== "{") return [field.name];
      const { message } = field;
      return keysOf(text, valueAt).flatMap((sub) => {
        const member = fieldsByKey(message).get(sub.key);
        return member === undefined ? [] : [`${field.name}.${member.name}`];
      });
    });
    request[mask.localName] = { $typeName: "google.protobuf.FieldMask", paths };
  };
}
