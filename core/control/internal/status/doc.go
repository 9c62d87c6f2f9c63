// Package status is what people and metrics are shown of the core's state. Its functions only read;
// they have no clock, lock or goroutine.
package status
