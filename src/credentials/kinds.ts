import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField, invalidFields } from "../errors.ts";

/** The secret keys of each type, all required; a type with two lists takes one of them. The proto's rules know the types too. */
const forms: Readonly<Record<string, readonly (readonly string[])[]>> = {
  usernamePassword: [["username", "password"]],
  officeSuite: [["clientId", "clientSecret"]],
  incidentPaging: [["routingKey"]],
  teamChat: [["token"]],
  itsmOAuth: [["clientId", "clientSecret"]],
  videoMeeting: [
    ["accountId", "clientId", "clientSecret"],
    ["apiKey", "apiSecret"],
  ],
};

const formsOf = (type: string) => (Object.hasOwn(forms, type) ? (forms[type] ?? []) : []);

/** The secret keys that a type takes, in words. */
function wanted(type: string): string {
  return formsOf(type)
    .map((form) => form.join(", "))
    .join(" or else ");
}

/** Whether these are the secret keys of a type, no more and no fewer. */
function fits(type: string, keys: readonly string[]): boolean {
  return formsOf(type).some((form) => form.length === keys.length && form.every((key) => keys.includes(key)));
}

/**
 * The secrets of a request under the names that they are stored by: `clientID` is read as `clientId`. None at all stay
 * none. @throws code 3 for each key that the type needs or does not know
 */
export function checkedSecrets(type: string, given: Readonly<Record<string, string>>): Record<string, string> {
  const { clientID, ...secrets }: Record<string, string> = given;
  if (clientID !== undefined) {
    if (secrets.clientId !== undefined)
      throw invalidField('secrets["clientID"]', "stands beside clientId", FieldRule.EXCLUDED);
    secrets.clientId = clientID;
  }
  const keys = Object.keys(secrets);
  if (keys.length === 0 || fits(type, keys)) return secrets;
  const [form = [], ...others] = formsOf(type);
  if (others.length > 0)
    throw invalidField("secrets", `must have exactly the keys ${wanted(type)} for ${type}`, FieldRule.SECRET);
  throw invalidFields([
    ...form
      .filter((key) => !keys.includes(key))
      .map((key) => ({ path: `secrets["${key}"]`, rule: `is required for ${type}`, id: FieldRule.REQUIRED })),
    ...keys
      .filter((key) => !form.includes(key))
      .map((key) => ({
        path: `secrets[${JSON.stringify(key)}]`,
        rule: `is unknown to ${type}, which takes ${wanted(type)}`,
        id: FieldRule.UNKNOWN_VALUE,
      })),
  ]);
}

/** That stored secrets may stay when the type becomes another one. @throws code 3 when it takes other keys */
export function checkKept(type: string, storedType: string, storedKeys: readonly string[]): void {
  if (type === storedType || fits(type, storedKeys)) return;
  throw invalidField("secrets", `must be given with the new type: ${type} takes ${wanted(type)}`, FieldRule.SECRET);
}
