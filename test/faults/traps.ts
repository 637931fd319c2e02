/**
 * What a version before takes without a word, though it hardly does what was meant: rules, triggers, silences, destinations and credentials.
 * They keep their values at an upgrade, may be sent back as they are, and the same requests are taken again.
 */
// Not Node's own, whose answers tests hold to this version's OpenAPI document.
import { fetch } from "undici";
import { differences } from "./kept.ts";

type Headers = Record<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = any;

const go = "{{ range .Alerts }}{{ .Labels.host }}{{ end }}";
const plain = (url: string) => ({ type: { webhook: { url } } });
const clause = { equals: { field: "severty", value: { stringVal: "x" } } };

/** By what they trip over: where they are made, and the request but for its name. */
const requests: Readonly<Record<string, [path: string, request: object]>> = {
  "an address of Slack": ["destinations", plain("https://hooks.slack.com/services/T0/B0/abcd")],
  "an address of Discord": ["destinations", plain("https://discord.com/api/webhooks/1/abcd")],
  "an address of Google Chat": ["destinations", plain("https://chat.googleapis.com/v1/spaces/abcd")],
  "an address of Teams": ["destinations", plain("https://acme.webhook.office.com/webhookb2/abcd")],
  "an address of Telegram": ["destinations", plain("https://api.telegram.org/bot1/sendMessage")],
  "an integration key": ["destinations", { type: { incidentPaging: { integrationKey: "short" } } }],
  "a bot token": ["destinations", { type: { teamChat: { channel: "c", token: "xapp-1" } } }],
  "a field": ["triggers", { type: { event: { query: { clause } } } }],
  "two matchers": ["triggers", { type: { event: { query: { matchers: ["a=b", "a=c"] } } } }],
  "no enabled": ["rules", { matchers: ["a=b"] }],
  "no sendUpdates": ["rules", { enabled: true, matchers: ["a=b"], destinationNames: ["an integration key"] }],
  "no repeatWhile": ["rules", { enabled: true, matchers: ["a=b"], repeat: true }],
  "repeatInterval alone": ["rules", { enabled: true, matchers: ["a=b"], repeatInterval: 600 }],
  "matchers that exclude each other": ["rules", { enabled: true, matchers: ["a=b", "a!=b"] }],
  "two signs": ["rules", { enabled: true, matchers: ["alertname==Down"] }],
  "numbers of seconds": [
    "rules",
    {
      matchers: ["a=b"],
      delaySec: 60,
      repeatInterval: "7200",
      grouping: { by: ["a"], waitSec: 30, intervalSec: "300" },
    },
  ],
  "Go's templates": ["rules", { matchers: ["a=b"], message: go }],
};

async function call(url: string, headers: Headers, method: string, path: string, body?: object) {
  const answer = await fetch(`${url}/v1/notification/${path}`, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Json };
}

const thing = (path: string, body: Json): Json => body[path.slice(0, -1)];

/** Tells of an address that is a secret: it is shown otherwise. */
const isHidden = (line: string) => /\.type\.webhook\.url was /.test(line);

/** Makes all over a server of the version before; returns what holds of another one, a line for each that does not. */
export async function traps(before: string, headers: Headers): Promise<(url: string) => Promise<string[]>> {
  const made: { name: string; path: string; request: object; stored: Json }[] = [];
  for (const [name, [path, request]] of Object.entries(requests)) {
    const { status, body } = await call(before, headers, "POST", path, { name, ...request });
    if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`);
    made.push({ name, path, request, stored: thing(path, body) });
  }
  let times = 0;
  return async (url) => {
    const wrong: string[] = [];
    times += 1;
    for (const { name, path, request, stored } of made) {
      const own = `${path}/${encodeURIComponent(name)}`;
      const differs = async (when: string) => {
        const { body } = await call(url, headers, "GET", own);
        // Rules name destinations that were made before them.
        const { etag, trouble, ruleNames, ...values } = stored;
        wrong.push(...differences(values, thing(path, body), `${name}, ${when}`).filter((line) => !isHidden(line)));
        return thing(path, body);
      };
      const shown = await differs("as it is shown");
      // An address that is sealed meanwhile, or again, gives its destination another etag.
      const isSealed = shown.type?.webhook?.url === "********";
      const back = await call(url, headers, "PUT", own, isSealed ? { ...stored, etag: "" } : stored);
      if (back.status !== 200) wrong.push(`${name} is sent back: ${back.status} ${JSON.stringify(back.body)}`);
      const after = await differs("as it is shown after it was sent back");
      if (!isSealed && after.etag !== shown.etag) wrong.push(`${name} is another one after it was sent back`);
      const again = await call(url, headers, "POST", path, { name: `${name} again ${times}`, ...request });
      const refused = "message" in request;
      if (again.status !== (refused ? 400 : 200))
        wrong.push(`${name} again: ${again.status} ${JSON.stringify(again.body)}`);
    }
    return wrong;
  };
}
