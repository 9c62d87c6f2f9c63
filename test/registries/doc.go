// Package registries is a trial that every plugin of kind registry passes against its registry's
// real server: a real control plane with the plugin, a real Envoy under requests, and an xDS client
// that notes all that it is sent. Between the plugin and the server is a line that can be cut.
//
// A registry has a folder of its own below this one, with a Trial and two tests, the second of
// which `make bench-registries` runs with more of everything:
//
//	func TestMain(m *testing.M)       { registries.Main(m) }
//	func TestTrial(t *testing.T)      { trial.Run(t) }
//	func TestChanges(t *testing.T)    { trial.Changes(t) }
//
// The folder istiod has what the same costs where instances come to istiod as ServiceEntries.
//
// What is heavy (servers that take long to build or to start) calls need.All(t) first.
//
// The steps of Run come in this order, each under requests, none of which may fail; and never may a
// set of endpoints that had some be empty:
//
//	first list       services and instances that are there before the plugin is
//	add, remove      an instance comes, one goes
//	weight           one is to get three times as much as the others
//	health           one is not healthy, and is again
//	metadata         one becomes of another version (a label `version`, which subsets select by)
//	restart          the server dies, is away for a while, and is started again; then instances come and go
//	cut              no connection for longer than a session lasts, while instances come and go; Forgetter: nor can
//	                 what was missed be had step by step afterwards
//	stall            connections stay, nothing passes, while instances come and go: those that there are, and then
//	                 new ones, too, for as long as a session lasts
//	partial answers  answers are cut in the middle, and garbage follows, while instances come and go
//	malformed        Spoiler: an instance's record becomes one that can't be read: its last good version stays, and
//	                 the fault is shown; a new one that can't be read harms no other
//	credentials      Trial.Wrong: a swap to credentials that the server refuses fails, the old ones go on; a control
//	                 plane that starts with them is not ready, and says why
//	many             10,000 instances of 100 services
//	killed           SIGKILL of the plugin, three times, while instances come and go
//	swapped          a new instance of the plugin takes over, three times, while instances come and go
//	dropped          with onLoss: {drop-after: 2s} the server dies: the endpoints go, and come back with it. The
//	                 plugin has to say that its server is away and back (sdk.Lost, sdk.Found)
//
// Cut, stall, partial answers, credentials and many are left to `make test-all`. A step that a
// registry can't do stands in Trial.Cannot, with the reason, which Run prints.
package registries
