import { beforeAll, describe, expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { dictionaries, grpcOf } from "./kinds.ts";

const server = await testServer();
const { sql } = server.database;

describe.each(dictionaries)("the dictionary of $title", (dictionary) => {
  const { path, list, member, shipped, missing } = dictionary;
  let tenant: TestTenant;
  let json: ReturnType<typeof v1>;
  let grpc: ReturnType<typeof grpcOf>;

  beforeAll(async () => {
    tenant = await testTenant(sql);
    json = v1(server.url, tenant.headers);
    grpc = grpcOf(dictionary, server.target, tenant.headers);
  });

  const at = (name: string) => `${path}/${encodeURIComponent(name)}`;

  describe("layers, step by step", () => {
    test("default only → own over default → default again", async () => {
      const before = await json("GET", at(shipped));
      expect(before).toMatchObject({ status: 200, body: { name: shipped, layer: "DEFAULT", default: null } });
      expect(before.body.description).not.toBe("");

      const made = await json("POST", path, { name: shipped, label: "ours", tags: ["mine"] });
      expect(made).toMatchObject({
        status: 200,
        body: { name: shipped, label: "ours", tags: ["mine"], description: "", layer: dictionary.layer(tenant) },
      });
      expect(made.body.default).toEqual(before.body);
      expect((await json("GET", at(shipped))).body).toEqual(made.body);
      const listed = (await json("GET", path)).body[list].filter(({ name }: { name: string }) => name === shipped);
      expect(listed).toEqual([made.body]);

      expect(await json("DELETE", at(shipped))).toMatchObject({ status: 200, body: {} });
      expect((await json("GET", at(shipped))).body).toEqual(before.body);
    });

    test("no entry → own without default → no entry", async () => {
      const made = await json("POST", path, { name: "of our own", description: "what it means" });
      expect(made).toMatchObject({ status: 200, body: { description: "what it means", default: null } });
      expect((await json("GET", at("of our own"))).body).toEqual(made.body);
      expect((await json("DELETE", at("of our own"))).body).toEqual({});
      expect((await json("GET", at("of our own"))).body.code).toBe(5);
      expect((await json("GET", path)).body[list]).not.toContainEqual(expect.objectContaining({ name: "of our own" }));
    });

    test("an own entry of another tenant changes nothing here", async () => {
      const other = await testTenant(sql);
      await v1(server.url, other.headers)("POST", path, { name: shipped, label: "theirs" });
      expect((await json("GET", at(shipped))).body).toMatchObject({ layer: "DEFAULT", default: null });
    });
  });

  describe("succeeds", () => {
    test("a list without page fields holds all entries that are in effect, ordered by name", async () => {
      const other = await testTenant(sql);
      const call = v1(server.url, other.headers);
      const defaults = (await call("GET", path)).body;
      for (const name of ["zz", "a new one", shipped]) await call("POST", path, { name });
      const { body } = await call("GET", path);
      const names = body[list].map(({ name }: { name: string }) => name);
      expect(names).toEqual([...new Set(names)].sort());
      expect(names).toHaveLength(defaults[list].length + 2);
      expect(body).toMatchObject({ totalCount: String(names.length), nextPageToken: "" });
      expect(defaults.totalCount).toBe(String(defaults[list].length));
    });

    test("the same over gRPC, with the members of an entry", async () => {
      const { [member]: made } = await grpc.create({ [member]: { name: "by gRPC", label: "l", tags: ["a", "b"] } });
      expect(made).toMatchObject({ name: "by gRPC", label: "l", tags: ["a", "b"], description: "" });
      expect(await grpc.get({ name: "by gRPC" })).toMatchObject({ [member]: made });
      const { [list]: entries, totalCount } = await grpc.list({});
      expect(entries).toContainEqual(made);
      expect(entries).toHaveLength(Number(totalCount));
      expect(await grpc.delete({ name: "by gRPC" })).toEqual({ $typeName: expect.any(String) });
    });

    test("names of any characters are found by their paths", async () => {
      for (const name of ["a/b c", "100 %", "ü\u{1f600}", "a:b", "a+b?c#d", "x".repeat(255)]) {
        expect(await json("POST", path, { name, label: name })).toMatchObject({ status: 200 });
        expect((await json("GET", at(name))).body).toMatchObject({ name, label: name });
        expect((await json("DELETE", at(name))).status).toBe(200);
      }
    });

    test("what a read answers can be sent back", async () => {
      await json("POST", path, { name: shipped, label: "l", description: "d" });
      const { body } = await json("GET", at(shipped));
      expect((await json("PATCH", at(shipped), { ...body, label: "m" })).body).toEqual({ ...body, label: "m" });
      await json("DELETE", at(shipped));
      expect((await json("POST", path, body)).body).toEqual(body);
      await json("DELETE", at(shipped));
    });
  });

  describe("a change", () => {
    const name = "to change";
    const whole = { name, label: "label", description: "description", tags: ["one", "two"] };
    beforeAll(async () => void (await json("POST", path, whole)));

    test.each([
      ["a member that is sent changes, the others stay", { label: "L" }, { label: "L" }],
      ["a member that is empty is emptied", { tags: [], description: "" }, { tags: [], description: "" }],
      ["null empties too", { label: null, tags: null }, { label: "", tags: [] }],
      ["the name may stand there when it is the same", { name, label: "L" }, { label: "L" }],
      ["nothing sent changes nothing", {}, {}],
      ["what only the service sets is passed over", { layer: "DEFAULT", default: { name: "x" } }, {}],
    ])("%s", async (_what, body, expected) => {
      await json("PATCH", at(name), whole);
      const answer = await json("PATCH", at(name), body);
      expect(answer).toMatchObject({ status: 200, body: { ...whole, ...expected, default: null } });
      expect((await json("GET", at(name))).body).toEqual(answer.body);
    });

    test("a mask in the query rules", async () => {
      await json("PATCH", at(name), whole);
      const answer = await json("PATCH", `${at(name)}?updateMask=label`, { label: "L", description: "D" });
      expect(answer.body).toMatchObject({ ...whole, label: "L" });
    });

    test("over gRPC an empty mask means the members that are set", async () => {
      await json("PATCH", at(name), whole);
      await grpc.update({ [member]: { name, label: "L", tags: [] } });
      expect((await json("GET", at(name))).body).toMatchObject({ ...whole, label: "L" });
      await grpc.update({ [member]: { name, label: "M" }, updateMask: { paths: ["tags", "label"] } });
      expect((await json("GET", at(name))).body).toMatchObject({ ...whole, label: "M", tags: [] });
    });

    test.each([
      ["another name in the body", at(name), { name: "another", label: "L" }, "name"],
      ["a mask that names no field", `${at(name)}?updateMask=nothing`, { label: "L" }, "updateMask"],
      ["a mask that names the name", `${at(name)}?updateMask=name`, { label: "L" }, "updateMask"],
      ["a label that is too long", at(name), { label: "x".repeat(256) }, "label"],
    ])("%s is code 3 and changes nothing", async (_what, target, body, field) => {
      const before = (await json("GET", at(name))).body;
      const answer = await json("PATCH", target, body);
      expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(field) } });
      expect((await json("GET", at(name))).body).toEqual(before);
    });

    test("without a name it is code 3 over gRPC", async () => {
      await expect(grpc.update({ [member]: { label: "L" } })).rejects.toMatchObject({ code: 3 });
      await expect(grpc.update({})).rejects.toMatchObject({ code: 3 });
    });
  });

  describe("invalid: 400, code 3", () => {
    test.each([
      ["no name", {}, "name"],
      ["an empty name", { name: "" }, "name"],
      ["a name of 256 characters", { name: "x".repeat(256) }, "name"],
      ["a name with a control character", { name: "a\nb" }, "name"],
      ["a description above 4 KiB", { name: "a", description: "é".repeat(2049) }, "description"],
      ["NUL in the description", { name: "a", description: "\0" }, "description"],
      ["101 tags", { name: "a", tags: Array.from({ length: 101 }, String) }, "tags"],
      ["an empty tag", { name: "a", tags: ["ok", ""] }, "tags[1]"],
      ["tags that are no list", { name: "a", tags: "b" }, "tags"],
      ["an unknown member", { name: "a", colour: "red" }, "colour"],
    ])("%s", async (_what, body, field) => {
      const answer = await json("POST", path, body);
      expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(field) } });
      expect(answer.body.details[0].fieldViolations[0].field).toBe(field);
    });

    test("over gRPC, with the path of the request", async () => {
      await expect(grpc.create({})).rejects.toMatchObject({ code: 3 });
      await expect(grpc.create({ [member]: {} })).rejects.toMatchObject({
        code: 3,
        rawMessage: expect.stringContaining(`${member}.name`),
      });
      await expect(grpc.get({})).rejects.toMatchObject({ code: 3 });
      await expect(grpc.list({ pageSize: -1 })).rejects.toMatchObject({ code: 3 });
      await expect(grpc.list({ pageToken: "x" })).rejects.toMatchObject({ code: 3 });
    });
  });

  describe("missing: code 5", () => {
    test.each(["GET", "PATCH", "DELETE"] as const)("%s answers the status of its RPC", async (method) => {
      const body = method === "PATCH" ? { label: "x" } : undefined;
      const answer = await json(method, at("never made"), body);
      expect(answer).toMatchObject({ status: missing[method], body: { code: 5 } });
      expect(answer.body.message).toContain("never made");
    });

    test.each(["PATCH", "DELETE"] as const)("%s of a default entry", async (method) => {
      const body = method === "PATCH" ? { label: "x" } : undefined;
      expect(await json(method, at(shipped), body)).toMatchObject({ status: missing[method], body: { code: 5 } });
    });

    test("a name of a wrong form is an unknown one", async () => {
      expect((await json("GET", at("x".repeat(300)))).body.code).toBe(5);
      expect((await json("GET", at("a\nb"))).body.code).toBe(5);
    });

    test("over gRPC", async () => {
      await expect(grpc.get({ name: "never made" })).rejects.toMatchObject({ code: 5 });
      for (const name of [shipped, "never made"]) {
        await expect(grpc.update({ [member]: { name, label: "x" } })).rejects.toMatchObject({ code: 5 });
        await expect(grpc.delete({ name })).rejects.toMatchObject({ code: 5 });
      }
    });
  });

  describe("conflict: 409, code 6", () => {
    test("a name that has an own entry", async () => {
      await json("POST", path, { name: "taken", label: "first" });
      const answer = await json("POST", path, { name: "taken", label: "second" });
      expect(answer).toMatchObject({ status: 409, body: { code: 6, message: expect.stringContaining("taken") } });
      await expect(grpc.create({ [member]: { name: "taken" } })).rejects.toMatchObject({ code: 6 });
      expect((await json("GET", at("taken"))).body.label).toBe("first");
    });

    test("of 200 concurrent creates of one name exactly one succeeds, the others answer code 6", async () => {
      const codes = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          grpc.create({ [member]: { name: "wanted by all", label: String(i) } }).then(
            () => 0,
            ({ code }) => code,
          ),
        ),
      );
      expect(codes.filter((code) => code === 0)).toHaveLength(1);
      expect(codes.filter((code) => code === 6)).toHaveLength(199);
    });
  });
});
