// Package expectations plays requests that a file names on the simulator, over what a control plane
// makes of a directory of resources, and says which do not do what the file expects of them, and
// which rules no request touches.
package expectations
