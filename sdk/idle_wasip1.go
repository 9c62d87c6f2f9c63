package sdk

// leniently does work as any other: memory of a module is never given back.
func leniently(work func()) { work() }
