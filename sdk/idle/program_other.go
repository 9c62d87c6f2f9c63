//go:build !linux

package idle

// dropProgram does nothing: the system tells nobody which pages are the file's own.
func dropProgram() {}
