package incr

// Same is an equal function for types that have ==. For slices there is slices.Equal, for bytes
// bytes.Equal.
func Same[V comparable](a, b V) bool { return a == b }
