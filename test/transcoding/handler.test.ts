import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Library, startLibrary } from "./library.ts";

let library: Library;
beforeAll(async () => {
  library = await startLibrary();
});
afterAll(() => library.close());

describe("succeeds", () => {
  test("a path variable of many segments reaches the handler", async () => {
    const { status, body } = await library.json("GET", "/v1/shelves/a/books/b%20c");
    expect(status).toBe(200);
    expect(body).toEqual({
      name: "shelves/a/books/b c",
      title: "Title of shelves/a/books/b c",
      pages: "12",
      tags: [],
      published: null,
      author: null,
      extra: null,
      shelf_mark: "",
    });
  });
});
