//go:build !linux

package host

func readOnly(string) bool { return false }
