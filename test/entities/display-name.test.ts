import { expect, test } from "vitest";
import { displayName } from "../../src/entities/display-name.ts";
import { nameFromDimensions } from "../../src/entities/identity.ts";

test.each<[dimensions: Record<string, string>, called: string]>([
  [{ instance: "web-1:9100", job: "node" }, "web-1"],
  [{ instance: "web-1:9187", job: "postgres" }, "web-1 (postgres)"],
  [{ instance: "web-1" }, "web-1"],
  [{ instance: "[2001:db8::1]:9100", job: "node" }, "[2001:db8::1]"],
  [{ instance: "2001:db8::1:9100" }, "2001:db8::1:9100"],
  [{ instance: "https://shop.example/health:check", job: "blackbox" }, "https://shop.example/health:check (blackbox)"],
  [{ "service.name": "checkout", "host.name": "web-1" }, "checkout on web-1"],
  [{ "service.name": "checkout", "host.id": "h-1" }, "h-1 · checkout"],
  [
    { cluster: "frankfurt", namespace: "shop", pod: "checkout-7d9f", uid: "0c5f2a1e-b6aa" },
    "shop · frankfurt · checkout-7d9f",
  ],
  [{ source: "prometheus" }, "prometheus"],
  [{ host: " " }, "host= "],
])("%j is called %s", (dimensions, called) => {
  expect(displayName(nameFromDimensions(dimensions), dimensions)).toBe(called);
});

test("an entity that a model named is called by that name", () => {
  expect(displayName("Front door", { instance: "web-1:9100", job: "node" })).toBe("Front door");
});
