// Package sdk is for authors of Coxswain plugins: implement the small interface of a kind and call
// Serve.
//
//	func main() {
//		sdk.Serve(sdk.RegistryPlugin{
//			Name: "hello", Version: "1", Publishes: []string{"services", "endpoints"},
//			New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
//		})
//	}
//
//	func run(ctx context.Context, out sdk.Publisher) error {
//		s := &sdk.Service{Host: "hello.example.com", Namespace: "default", Ports: []*sdk.Port{{Number: 80, Name: "http"}}}
//		e := &sdk.Endpoint{Host: s.Host, Namespace: s.Namespace, PortName: "http", Address: "127.0.0.1", Port: 8080}
//		return sdk.NewList(out).Set([]*sdk.Service{s}, []*sdk.Endpoint{e})
//	}
//
// and in plugins.yaml:
//
//	plugins:
//	  - name: hello
//	    kind: registry
//	    process: {command: /usr/local/bin/hello}
//	    insecure: true # or sha256: what sha256sum prints of the program
//
// The same source builds as a process plugin (go build) and as a WASM plugin (GOOS=wasip1
// GOARCH=wasm go build): the hello plugin above is a module of 3 MB. Fetch, Sleep and rows work in
// both.
//
// # Kinds
//
// For each kind there is a declaration, a struct with what a plugin of that kind says of itself:
// RegistryPlugin, ConfigSourcePlugin and so on. Its field New makes the plugin, of a type that is
// the kind's interface:
//
//   - Registry publishes services, endpoints and workloads; ConfigSource publishes config tables. Both have one method, Run.
//   - Deriver publishes rows that are a function of the rows it reads, in the same revision. Its method is called for each revision
//     that changed something it reads. It counts as a registry or a config source, by what it publishes.
//   - Generator makes Envoy resources of rows, the simple form: Place says which view a proxy is in, Generate makes the resources of
//     a view, and the SDK finds out what changed. Engine is the full form, for generators that compute increments (package incr).
//   - Patch changes what a generator made. Authenticator says who is calling. Controller does other long-running work.
//
// Extras are optional interfaces that a generator or an engine may have as well: Explainer,
// Answerer, Reporter. A config source that writes where its objects are kept is a Store, too;
// others ask it by way of the core, with what ObjectsOf returns. A registry or a config source that
// wants to know what proxies refuse of what was made from its rows is Blamed; a controller that
// wants to know which clients are connected is a ClientWatcher.
//
// # Config
//
// An entry's config is read into a struct of the author's, strictly: WithConfig says how. The same
// struct makes the config's JSON Schema. A plugin that takes none says WithoutConfig.
//
// # Life
//
// The core starts the process and sends the entry's config. The constructor gets it and starts
// nothing; its error refuses the config, and a *FieldError names the field. Then the plugin works
// until the core drains it: ctx ends, the methods that run may finish, the process ends. When Run
// returns an error, or panics, the process ends and is started again; rows and resources that were
// published stay served meanwhile, and only what differs afterwards is a change. A plugin never
// outlives its core: a pipe that the core holds open is watched.
//
// A panic or an error in Derive, Commit or Generate ends nothing: it is a fault of that revision,
// shown with the plugin's name, what was there before stays, and the changed keys come again with
// the next revision.
//
// While a method of a Deriver, Engine, Generator or Patch runs the SDK sends signs of life. They
// say that the process works, not that the method will end: a method that hangs is found by the
// core's deadlines, for a revision and for a call.
//
// # Rows and revisions
//
// A row has a key and an encoded payload. ServiceRow, EndpointRow and WorkloadRow make rows of the
// standard tables with the right keys; config kinds have the key NAMESPACE/NAME and the spec as
// protobuf. Encode deterministically: equal bytes mean equal rows, and equal rows are no change.
// What a plugin reads is a state.State: all its tables at one revision, immutable, and cheap to
// keep. A Change says which keys differ; state.Index and state.Decoder follow it at the cost of the
// change alone.
//
// # Without a core
//
// Package plugintest runs a plugin in memory and plays the core, for tests; its Conform runs the
// conformance suite of the plugin's kind. Run is Serve over any carrier. The folder examples has a
// complete plugin of each kind, with its tests.
package sdk
