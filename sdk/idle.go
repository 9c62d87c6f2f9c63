package sdk

// initialized is called when all that there is has been read for the first time, and by a process
// that rests after work. A process that was lenient with garbage until then is so no longer.
var initialized = func() {}
