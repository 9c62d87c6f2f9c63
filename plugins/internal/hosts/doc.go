// Package hosts holds what registries, and those that read their rows, share: the keys of the
// standard tables, the names of protocols, and what an endpoint's labels and address say.
package hosts
