// Package guides runs the guides in docs/guides as their readers do.
package guides
