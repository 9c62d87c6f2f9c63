// A client of grpc-js that finds its servers by xDS (GRPC_XDS_BOOTSTRAP). For each line on standard input, a number, it makes that many calls one
// after the other, and prints one line: how often each server answered, and the code of the first call that failed.
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const client = new grpc.Client(process.argv[2], grpc.credentials.createInsecure());

// name reads a google.protobuf.StringValue whose text is short: a tag, a length, the text.
const name = (bytes) => bytes.subarray(2).toString();

const ask = () => new Promise((resolve, reject) => {
  const deadline = Date.now() + 30000;
  client.makeUnaryRequest('/test.Echo/Who', () => Buffer.alloc(0), name, {}, new grpc.Metadata(), { deadline }, (err, who) => err ? reject(err) : resolve(who));
});

async function answer(line) {
  const out = { from: {} };
  for (let i = 0; i < Number(line) && !out.code; i++) {
    try {
      const who = await ask();
      out.from[who] = (out.from[who] || 0) + 1;
    } catch (err) {
      out.code = err.code;
      out.details = err.details;
    }
  }
  console.log(JSON.stringify(out));
}

(async () => {
  for await (const line of require('readline').createInterface({ input: process.stdin })) await answer(line);
  client.close();
  process.exit(0);
})();
