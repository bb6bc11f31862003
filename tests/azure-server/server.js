// An Azure Blob server with one container: azurite, which looks at signatures as Azure does.
//
// In: the port, a directory and the container; AZURITE_ACCOUNTS with one ACCOUNT:KEY. It says `fact ready=true` when the
// container is there. On SIGTERM it writes what it keeps and ends.

"use strict";

const crypto = require("crypto");
const http = require("http");

const [port, directory, container] = process.argv.slice(2);
const [account, key] = process.env.AZURITE_ACCOUNTS.split(":");
process.argv.splice(2, 3, "--silent", "--disableTelemetry", "--blobPort", port, "--location", directory);
require("azurite/dist/src/blob/main");

// Signed with the account's key (Microsoft, "Authorize with Shared Key"): eleven headers that are not sent are empty.
function make() {
  const date = new Date().toUTCString();
  const version = "2021-08-06";
  const text =
    `PUT${"\n".repeat(12)}x-ms-date:${date}\nx-ms-version:${version}\n` +
    `/${account}/${account}/${container}\nrestype:container`;
  const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const headers = {
    "x-ms-date": date,
    "x-ms-version": version,
    authorization: `SharedKey ${account}:${signature}`,
    "content-length": 0,
  };
  const path = `/${account}/${container}?restype=container`;
  const request = http.request({ host: "127.0.0.1", port, path, method: "PUT", headers, agent: false });
  request.on("error", () => setTimeout(make, 50));
  request.on("response", (answer) => {
    answer.resume();
    // 409: it is there already.
    if (answer.statusCode !== 201 && answer.statusCode !== 409) {
      console.error(`no container: ${answer.statusCode} ${answer.statusMessage}`);
      process.exit(1);
    }
    console.log("fact ready=true");
  });
  request.end();
}

make();
