// Package nametable makes the name table: what a proxy's agent answers to the workload's DNS
// queries.
package nametable

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Entry is a name of the table, and what it means.
type Entry struct {
	Host string
	IPs  []string
	// Registry is the kind of registry that the name comes from.
	Registry string
	// Short and Namespace make the shorter forms of the name; of Kubernetes' services.
	Short, Namespace string
	// Far: the same name of the client's own cluster counts more.
	Far bool
}

// Fields of istio.networking.nds.v1.NameTable, of the entries of its map and of their values. No
// library ships the message.
const (
	tableField     = 1
	keyField       = 1
	valueField     = 2
	ipsField       = 1
	registryField  = 2
	shortField     = 3
	namespaceField = 4
)

// Kubernetes is the registry whose names hide others'.
const Kubernetes = "Kubernetes"

// Encode makes the table. Entries of one name are merged: those of Kubernetes hide others, near
// ones hide far ones, and the others' addresses are joined.
func Encode(entries []Entry) []byte {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Host, b.Host) })
	out := []byte{} // a table without names is one, too
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].Host == entries[0].Host {
			n++
		}
		out = appendMessage(out, tableField, pair(Merge(entries[:n])))
		entries = entries[n:]
	}
	return out
}

// Merge is what entries of one name are together.
func Merge(same []Entry) Entry {
	out := same[0]
	for _, e := range same[1:] {
		switch {
		case e.Registry == Kubernetes && (out.Registry != Kubernetes || out.Far && !e.Far):
			out = e
		case out.Registry != Kubernetes:
			out.IPs = slices.Concat(out.IPs, e.IPs)
		}
	}
	return out
}

func pair(e Entry) []byte {
	return appendMessage(appendText(nil, keyField, e.Host), valueField, value(e))
}

func value(e Entry) []byte {
	var out []byte
	for _, ip := range e.IPs {
		out = appendText(out, ipsField, ip)
	}
	out = appendText(out, registryField, e.Registry)
	out = appendText(out, shortField, e.Short)
	return appendText(out, namespaceField, e.Namespace)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendMessage(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}
