// Package show writes what a control plane says of itself as people read it: tables and sentences.
// Functions that are named as a page's content write it to a tabwriter, or any other writer; those
// with wide leave nothing out then. It asks nobody: commands get the content, and choose the form
// (format.go).
package show
