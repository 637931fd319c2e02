import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connectOnce } from "../../../src/db/connect.ts";

test("a server that asks for the password in clear text does not get it", async () => {
  let heard = "";
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])));
    socket.on("data", (bytes) => {
      heard += bytes.toString("latin1");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const { sql, close } = connectOnce(`postgres://belfry:very-secret@127.0.0.1:${port}/belfry`, "test");
  await expect(sql`select 1`).rejects.toThrow(/password in clear text/);
  await close();
  expect(heard).toContain("belfry");
  expect(heard).not.toContain("secret");
});
