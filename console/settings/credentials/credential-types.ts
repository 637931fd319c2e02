/** A secret of a credential: its key, its label, and whether what is typed is hidden. */
export type SecretKey = readonly [key: string, label: string, hidden: boolean];

interface CredentialType {
  readonly word: string;
  /** Sentence that names its users. */
  readonly serves: string;
  /** The secrets that it takes; of several lists one. Each list has a name where there are more. */
  readonly forms: readonly { readonly name: string; readonly keys: readonly SecretKey[] }[];
}

const client: readonly SecretKey[] = [
  ["clientId", "Client's identifier", false],
  ["clientSecret", "Client's secret", true],
];
const only = (keys: readonly SecretKey[]) => [{ name: "", keys }];
const unused = "No destination uses it yet.";

/** The types of credentials, by the names that the API has for them. */
export const credentialTypes: Readonly<Record<string, CredentialType>> = {
  usernamePassword: {
    word: "User name and password",
    serves: "For ServiceNow destinations.",
    forms: only([
      ["username", "User name", false],
      ["password", "Password", true],
    ]),
  },
  itsmOAuth: {
    word: "ServiceNow OAuth client (itsmOAuth)",
    serves: "For ServiceNow destinations that log in by OAuth.",
    forms: only(client),
  },
  incidentPaging: {
    word: "PagerDuty key (incidentPaging)",
    serves: "For PagerDuty destinations.",
    forms: only([["routingKey", "Integration key", true]]),
  },
  teamChat: {
    word: "Slack token (teamChat)",
    serves: "For Slack destinations.",
    forms: only([["token", "Token", true]]),
  },
  officeSuite: { word: "Office suite", serves: unused, forms: only(client) },
  videoMeeting: {
    word: "Video meetings",
    serves: unused,
    forms: [
      { name: "Account and client", keys: [["accountId", "Account's identifier", false], ...client] },
      {
        name: "API key",
        keys: [
          ["apiKey", "API key", true],
          ["apiSecret", "API secret", true],
        ],
      },
    ],
  },
};

export const typeWord = (type: string) => credentialTypes[type]?.word ?? type;
