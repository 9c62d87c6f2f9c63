// Package dns tries controller/dns as users run it: a control plane, clients that ask all the time,
// dig, and an Envoy that resolves its cluster by it.
package dns
