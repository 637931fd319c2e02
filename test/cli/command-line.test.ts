import { expect, test } from "vitest";
import { helpOf, troubleWith, type Usage } from "../../src/cli/command-line.ts";

const usage: Usage = [
  ["migrate", "bring it up to date"],
  ["keys create <tenant> <client id> [--description <text>] [--expires <time>]", "make a key"],
  ["keys list <tenant> [<client id>]", "print keys,"],
  ["", "all or some"],
  ["keys revoke <key id>", "revoke a key"],
];

const shown = (text: string) => usage.filter(([call, does]) => text.includes(call) && text.includes(does)).length;

test.each([
  [[], "which command?", 5],
  [["kyes", "list"], 'there is no command "kyes"; did you mean "keys"?', 0],
  [["something"], 'there is no command "something"', 0],
  [["upgrade"], 'there is no command "upgrade"; did you mean "migrate"?', 0],
  [["keys"], "keys needs one of create, list, revoke", 4],
  [["keys", "crate", "a"], 'keys has no "crate"; did you mean "create"?', 4],
  [["keys", "create"], "keys create lacks <tenant> <client id>", 1],
  [["keys", "create", "a"], "keys create lacks <client id>", 1],
  [["keys", "list"], "keys list lacks <tenant>", 2],
  [["keys", "list", "a", "b", "c", "d"], 'keys list takes no "c" "d"', 2],
  [["keys", "create", "a", "b", "--expire", "1"], 'keys create has no option --expire; did you mean "--expires"?', 1],
  [["keys", "create", "a", "b", "--expires=1", "--description"], "--description needs a value", 1],
  [["keys", "revoke", "a", "-x"], "keys revoke has no option -x", 1],
  [["migrate", "now"], 'migrate takes no "now"', 1],
])("%j: the first line says what is wrong, the next ones only how such a command is called", (args, wrong, rows) => {
  const [first, ...rest] = troubleWith(usage, args).split("\n");
  expect(first).toBe(wrong);
  expect(shown(rest.join("\n"))).toBe(rows);
});

test("help about a command, or about a group of them, holds no other", () => {
  expect(helpOf(usage, ["keys"])?.split("\n")).toHaveLength(5);
  expect(helpOf(usage, ["keys", "list"])).toMatch(
    /^ {2}npm run belfry -- keys list <tenant> .* print keys,\n +all or some$/,
  );
  expect(helpOf(usage, ["keys", "revoke", "a"])).toContain("revoke a key");
  expect(helpOf(usage, ["nothing"])).toBeUndefined();
});
