import { expect, test } from "vitest";

/** Modules of the console are written for a browser, whose types the tests do not have. */
const load = (path: string) => import(`../../console/${path}`);
const { linkTo } = await load("data/address.ts");
const { csvLine } = await load("data/download.ts");

test("a link keeps names and parameters apart, whatever is in them", () => {
  expect(linkTo(["entities", "a/b?c"], { search: "d&e=f#" })).toBe("#/entities/a%2Fb%3Fc?search=d%26e%3Df%23");
});

test("no cell of a CSV file is a formula; numbers stay numbers, and what separates cells is quoted", () => {
  const [cells, safe] = [
    ["=1+1", "+1", "-1+1", "@a", "\ta", "-1.5", 'a,"b"', "＝1", "＋1", " =1", "\ufeff=1", "\n=1"],
    ["'=1+1", "'+1", "'-1+1", "'@a", "'\ta", "-1.5", '"a,""b"""', "'＝1", "'＋1", "' =1", "'\ufeff=1", `"'\n=1"`],
  ];
  expect(csvLine(cells)).toBe(`${safe.join(",")}\r\n`);
});
