// A client of grpc-js that finds its servers by xDS (GRPC_XDS_BOOTSTRAP). languages_test.go says what it reads and prints.
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const clients = {};
const clientOf = (target) => clients[target] ||= new grpc.Client('xds:///' + target, grpc.credentials.createInsecure());

// name reads a google.protobuf.StringValue whose text is short: a tag, a length, the text.
const name = (bytes) => bytes.subarray(2).toString();

const ask = (client, headers) => new Promise((resolve, reject) => {
  const deadline = Date.now() + 30000, metadata = grpc.Metadata.fromHttp2Headers(headers);
  client.makeUnaryRequest('/test.Echo/Who', () => Buffer.alloc(0), name, {}, metadata, { deadline }, (err, who) => err ? reject(err) : resolve(who));
});

async function answer({ target, calls, headers }) {
  const out = { from: {} };
  for (let i = 0; i < calls && !out.code; i++) {
    try {
      const who = await ask(clientOf(target), headers || {});
      out.from[who] = (out.from[who] || 0) + 1;
    } catch (err) {
      out.code = err.code;
      out.details = err.details;
    }
  }
  console.log(JSON.stringify(out));
}

(async () => {
  for await (const line of require('readline').createInterface({ input: process.stdin })) await answer(JSON.parse(line));
  process.exit(0);
})();
